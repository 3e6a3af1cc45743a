#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>

#include "kelvin/data/dataset.h"

namespace kelvin::embedded_test {

class Embedded : public testing::TestWithParam<std::string> {};

TEST_P(Embedded, HasTheSizesAskedFor) {
  const auto dataset = load_dataset(GetParam(), {.train_samples = 33, .test_samples = 7});
  EXPECT_EQ(dataset.train.pixels.sizes(), (torch::IntArrayRef{33, 3, 32, 32}));
  EXPECT_EQ(dataset.test.pixels.sizes(), (torch::IntArrayRef{7, 3, 32, 32}));
  EXPECT_EQ(dataset.train.size(), 33);
  EXPECT_EQ(dataset.test.size(), 7);
}

TEST_P(Embedded, ShowsAllClassesInBothSplits) {
  const auto dataset = load_dataset(GetParam(), {.train_samples = 100, .test_samples = 100});
  for (const auto& images : {dataset.train, dataset.test}) {
    const auto counts = torch::bincount(images.labels, {}, dataset.classes);
    EXPECT_EQ(counts.size(0), dataset.classes);
    EXPECT_EQ(counts.min().item<int64_t>(), 100 / dataset.classes);
    EXPECT_EQ(counts.max().item<int64_t>(), 100 / dataset.classes);
  }
}

TEST_P(Embedded, GivesTheSameBytesOnOneThreadAndOnTwo) {
  const DatasetRequest request{.train_samples = 300, .test_samples = 150};
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = load_dataset(GetParam(), request);
  at::set_num_threads(2);
  const auto two = load_dataset(GetParam(), request);
  at::set_num_threads(threads);
  EXPECT_TRUE(one.train.pixels.equal(two.train.pixels));
  EXPECT_TRUE(one.test.pixels.equal(two.test.pixels));
  EXPECT_TRUE(one.train.labels.equal(two.train.labels));
}

TEST_P(Embedded, BeginsAlikeHoweverMuchIsAskedFor) {
  const auto small = load_dataset(GetParam(), {.train_samples = 10, .test_samples = 10});
  const auto large = load_dataset(GetParam(), {.train_samples = 20, .test_samples = 15});
  EXPECT_TRUE(large.train.pixels.narrow(0, 0, 10).equal(small.train.pixels));
  EXPECT_TRUE(large.test.pixels.narrow(0, 0, 10).equal(small.test.pixels));
}

TEST_P(Embedded, ShowsOtherImagesInTheTestSplit) {
  const auto dataset = load_dataset(GetParam(), {.train_samples = 50, .test_samples = 50});
  const auto same =
      (dataset.train.pixels == dataset.test.pixels).flatten(1).all(1).sum().item<int64_t>();
  EXPECT_EQ(same, 0);
}

TEST_P(Embedded, KnowsTheMeanAndDeviationOfItsTrainingPixels) {
  const auto dataset = load_dataset(GetParam(), {.train_samples = 60, .test_samples = 1});
  const auto pixels = dataset.train.pixels.to(torch::kFloat64) / 255;
  const auto mean = pixels.mean({0, 2, 3});
  const auto variance = (pixels - mean.view({1, 3, 1, 1})).square().mean({0, 2, 3});
  for (int64_t channel = 0; channel < 3; ++channel) {
    const auto c = static_cast<size_t>(channel);
    EXPECT_NEAR(dataset.mean.at(c), mean[channel].item<double>(), 1e-12);
    EXPECT_NEAR(dataset.std_dev.at(c), variance[channel].sqrt().item<double>(), 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Embedded, testing::Values("glyphs100", "glyphs10", "textures10"),
                         [](const auto& info) { return info.param; });

TEST(EmbeddedSizes, AreTenThousandAndTwoThousandUnlessAskedFor) {
  const auto dataset = load_dataset("textures10", {});
  EXPECT_EQ(dataset.train.size(), 10'000);
  EXPECT_EQ(dataset.test.size(), 2'000);
}

TEST(EmbeddedClasses, AreAsTheNamesSay) {
  EXPECT_EQ(datasets().find("glyphs100").classes, 100);
  EXPECT_EQ(datasets().find("glyphs10").classes, 10);
  EXPECT_EQ(datasets().find("textures10").classes, 10);
}

}  // namespace kelvin::embedded_test
