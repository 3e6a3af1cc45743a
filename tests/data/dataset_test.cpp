#include "kelvin/data/dataset.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

Images plain_images(int64_t samples) {
  return {.pixels = torch::zeros({samples, 3, 4, 4}, torch::kUInt8),
          .labels = torch::arange(samples, torch::kInt64).remainder(3)};
}

std::string next_name() {
  static int count = 0;
  return "test_dataset_" + std::to_string(count++);
}

// Registers a dataset of 3 classes that `spoil` was let loose on, and returns its name.
template <class Spoil>
std::string dataset_spoilt_by(const Spoil& spoil) {
  const auto name = next_name();
  datasets().add(name, {.summary = "made by dataset_test",
                        .reference = "",
                        .classes = 3,
                        .load = [spoil](const DatasetRequest&) {
                          Dataset dataset;
                          dataset.train = plain_images(6);
                          dataset.test = plain_images(3);
                          spoil(dataset);
                          return dataset;
                        }});
  return name;
}

template <class Spoil>
std::string error_when(const Spoil& spoil) {
  const auto name = dataset_spoilt_by(spoil);
  auto message = error_of([&] { load_dataset(name, {}); });
  const auto opening = "dataset '" + name + "': ";
  EXPECT_TRUE(message.starts_with(opening)) << message;
  return message.substr(std::min(message.size(), opening.size()));
}

TEST(Dataset, GetsItsNameAndClassesFromItsEntry) {
  const auto name = dataset_spoilt_by([](Dataset& dataset) {
    dataset.name = "another";
    dataset.classes = 99;
  });
  const auto dataset = load_dataset(name, {});
  EXPECT_EQ(dataset.name, name);
  EXPECT_EQ(dataset.classes, 3);
  EXPECT_EQ(dataset.train.size(), 6);
  EXPECT_EQ(dataset.test.size(), 3);
}

TEST(Dataset, HandsTheRequestToItsEntry) {
  static DatasetRequest seen;
  const auto name = next_name();
  datasets().add(
      name,
      {.summary = "", .reference = "", .classes = 3, .load = [](const DatasetRequest& request) {
         seen = request;
         Dataset dataset;
         dataset.train = plain_images(1);
         dataset.test = plain_images(1);
         return dataset;
       }});
  load_dataset(name, {.train_samples = 17, .test_samples = 5});
  EXPECT_EQ(seen.train_samples, 17);
  EXPECT_EQ(seen.test_samples, 5);
}

TEST(Dataset, UnknownNameNamesTheNearest) {
  const auto message = error_of([] { load_dataset("glyphs1000", {}); });
  EXPECT_TRUE(message.starts_with("no dataset named 'glyphs1000'; did you mean 'glyphs100'?"))
      << message;
  EXPECT_NE(message.find("textures10"), std::string::npos) << message;
}

TEST(Dataset, RejectsNegativeSampleCounts) {
  EXPECT_EQ(error_of([] { load_dataset("glyphs10", {.train_samples = -1, .test_samples = 4}); }),
            "dataset 'glyphs10': sample counts must not be below 0, got -1 and 4");
  EXPECT_EQ(error_of([] { load_dataset("glyphs10", {.train_samples = 4, .test_samples = -7}); }),
            "dataset 'glyphs10': sample counts must not be below 0, got 4 and -7");
}

TEST(Dataset, RejectsPixelsThatAreNotBytes) {
  EXPECT_EQ(error_when([](Dataset& dataset) {
              dataset.train.pixels = dataset.train.pixels.to(torch::kFloat32);
            }),
            "train pixels must be uint8 [samples, channels, height, width]");
}

TEST(Dataset, RejectsPixelsWithoutAChannelDimension) {
  EXPECT_EQ(error_when([](Dataset& dataset) {
              dataset.test.pixels = torch::zeros({3, 4, 4}, torch::kUInt8);
            }),
            "test pixels must be uint8 [samples, channels, height, width]");
}

TEST(Dataset, RejectsASplitWithoutSamples) {
  EXPECT_EQ(error_when([](Dataset& dataset) { dataset.test = plain_images(0); }),
            "test pixels must be uint8 [samples, channels, height, width]");
}

TEST(Dataset, RejectsASplitThatWasNeverFilled) {
  EXPECT_EQ(error_when([](Dataset& dataset) { dataset.test = {}; }),
            "test pixels must be uint8 [samples, channels, height, width]");
}

TEST(Dataset, RejectsImagesWithoutALabelEach) {
  EXPECT_EQ(error_when([](Dataset& dataset) { dataset.train.labels = plain_images(5).labels; }),
            "train needs an int64 label for each image");
}

TEST(Dataset, RejectsLabelsThatAreNotInt64) {
  EXPECT_EQ(error_when([](Dataset& dataset) {
              dataset.test.labels = dataset.test.labels.to(torch::kInt32);
            }),
            "test needs an int64 label for each image");
}

TEST(Dataset, RejectsLabelsOutsideOfTheClasses) {
  EXPECT_EQ(error_when([](Dataset& dataset) { dataset.train.labels[2] = 3; }),
            "train labels must be in [0, 3)");
  EXPECT_EQ(error_when([](Dataset& dataset) { dataset.test.labels[0] = -1; }),
            "test labels must be in [0, 3)");
}

}  // namespace
}  // namespace kelvin
