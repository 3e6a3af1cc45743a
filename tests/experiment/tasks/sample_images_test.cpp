#include "kelvin/experiment/tasks/sample_images.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kelvin/data/dataset.h"
#include "tests/support/errors.h"

namespace kelvin::sample_images_test {

Config config_of(const std::vector<std::string>& overrides) {
  Config config;
  config.apply_override("data.name=glyphs10");
  config.apply_override("data.train_samples=50");
  config.apply_override("data.test_samples=30");
  for (const auto& assignment : overrides) config.apply_override(assignment);
  return config;
}

TEST(SampleImages, AreEquallyOfEachClassAndSorted) {
  const auto samples = sample_images(config_of({}), 20, /*of_training=*/true, {});
  EXPECT_EQ(samples.images.size(), 20);
  EXPECT_EQ(samples.class_names.size(), 10U);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(samples.images.labels[i], static_cast<int64_t>(i / 2));
  EXPECT_EQ(samples.images.image_bytes(), 3 * 32 * 32);
  EXPECT_EQ(samples.images.pixels.size(), static_cast<size_t>(20 * 3 * 32 * 32));
}

TEST(SampleImages, AreTheBytesOfTheDataset) {
  const auto samples = sample_images(config_of({}), 30, /*of_training=*/false, {});
  const auto dataset = load_dataset("glyphs10", {.train_samples = 50, .test_samples = 30});
  int64_t sum = 0;
  for (const auto byte : samples.images.pixels) sum += byte;
  EXPECT_EQ(sum, dataset.test.pixels.sum().item<int64_t>());
}

TEST(SampleImages, ShowTheAugmentationOfTrainingImagesOnly) {
  const auto pixels = [](const std::string& augmentation, bool of_training) {
    return sample_images(config_of({"data.augment=" + augmentation}), 10, of_training, {})
        .images.pixels;
  };
  EXPECT_NE(pixels("crop-flip", true), pixels("none", true));
  EXPECT_EQ(pixels("crop-flip", false), pixels("none", false));
}

TEST(SampleImages, RejectACountOfZero) {
  EXPECT_EQ(error_of([] { sample_images(config_of({}), 0, true, {}); }),
            "sample_images: count must be at least 1, got 0");
}

}  // namespace kelvin::sample_images_test
