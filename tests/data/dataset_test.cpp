#include "kelvin/data/dataset.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <set>
#include <string>
#include <vector>

#include "tests/support/errors.h"

namespace kelvin::dataset_test {

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
  auto name = next_name();
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

// A dataset of 4 classes whose class 0 has 40 training images, class 1 30, class 2 20, class 3 10;
// each image is filled with its index.
std::string uneven_dataset() {
  auto name = next_name();
  datasets().add(
      name,
      {.summary = "", .reference = "", .classes = 4, .load = [](const DatasetRequest&) {
         Dataset dataset;
         dataset.class_names = {"ant", "bee", "cat", "dog"};
         const auto counts = torch::tensor({40, 30, 20, 10}, torch::kInt64);
         const auto labels = torch::arange(4, torch::kInt64).repeat_interleave(counts);
         const auto numbers = torch::arange(100, torch::kUInt8).view({-1, 1, 1, 1});
         dataset.train = {.pixels = numbers.expand({100, 3, 4, 4}).contiguous(), .labels = labels};
         dataset.test = dataset.train;
         return dataset;
       }});
  return name;
}

std::vector<int64_t> class_counts(const Images& images, int64_t classes) {
  const auto counts = torch::bincount(images.labels, {}, classes);
  return {counts.data_ptr<int64_t>(), counts.data_ptr<int64_t>() + counts.numel()};
}

std::set<int64_t> numbers_of(const Images& images) {
  std::set<int64_t> numbers;
  for (int64_t i = 0; i < images.size(); ++i) {
    numbers.insert(images.pixels[i][0][0][0].item<int64_t>());
  }
  return numbers;
}

using Counts = std::vector<int64_t>;

TEST(Dataset, TakesAsManySamplesOfEachClassAsItCan) {
  const auto name = uneven_dataset();
  const auto dataset = load_dataset(name, {.train_samples = 20, .test_samples = 60});
  EXPECT_EQ(class_counts(dataset.train, 4), (Counts{5, 5, 5, 5}));
  // Ten of the smallest class are all that there are; the others share the rest.
  EXPECT_EQ(class_counts(dataset.test, 4), (Counts{17, 17, 16, 10}));
}

TEST(Dataset, TakesTheSameSamplesForTheSameSubsetSeed) {
  const auto name = uneven_dataset();
  const auto sample = [&](uint64_t seed) {
    return numbers_of(load_dataset(name, {.train_samples = 20, .subset_seed = seed}).train);
  };
  EXPECT_EQ(sample(1), sample(1));
  EXPECT_NE(sample(1), sample(2));
}

TEST(Dataset, KeepsTheClassesThatAreNamedInThatOrder) {
  const auto name = uneven_dataset();
  const auto dataset = load_dataset(name, {.classes = {"dog", "bee"}});
  EXPECT_EQ(dataset.classes, 2);
  EXPECT_EQ(dataset.class_names, (std::vector<std::string>{"dog", "bee"}));
  EXPECT_EQ(class_counts(dataset.train, 2), (Counts{10, 30}));
  EXPECT_EQ(dataset.train.labels[0].item<int64_t>(), 1) << "a bee";
  EXPECT_EQ(dataset_facts(name, {.classes = {"dog", "bee"}}).classes, 2);
}

TEST(Dataset, KeepsTheFirstClassesIfTheirNumberIsGiven) {
  const auto name = uneven_dataset();
  const auto dataset = load_dataset(name, {.classes = {"3"}});
  EXPECT_EQ(dataset.classes, 3);
  EXPECT_EQ(class_counts(dataset.test, 3), (Counts{40, 30, 20}));
  EXPECT_EQ(dataset_facts(name, {.classes = {"3"}}).classes, 3);
}

TEST(Dataset, HoldsOutValidationImagesThatTrainingNeverSees) {
  const auto name = uneven_dataset();
  const auto dataset =
      load_dataset(name, {.train_samples = 30, .validation_samples = 20, .subset_seed = 3});
  EXPECT_EQ(dataset.train.size(), 30);
  EXPECT_EQ(class_counts(dataset.validation, 4), (Counts{5, 5, 5, 5}));
  EXPECT_EQ(dataset.test.size(), 100);
  const auto held_out = numbers_of(dataset.validation);
  for (const auto number : numbers_of(dataset.train)) EXPECT_FALSE(held_out.contains(number));
}

TEST(Dataset, TestsOnValidationImagesOnRequest) {
  const auto name = uneven_dataset();
  const auto dataset = load_dataset(name, {.validation_samples = 20, .test_on_validation = true});
  EXPECT_EQ(numbers_of(dataset.test), numbers_of(dataset.validation));
  EXPECT_EQ(error_of([&] { load_dataset(name, {.test_on_validation = true}); }),
            "dataset '" + name +
                "': to test on validation images, hold some out (data.validation_samples)");
}

TEST(Dataset, ChoosesClassesOfDrawnImagesBeforeItCountsThem) {
  const auto dataset =
      load_dataset("glyphs10", {.train_samples = 30, .test_samples = 12, .classes = {"3"}});
  EXPECT_EQ(class_counts(dataset.train, 3), (Counts{10, 10, 10}));
  EXPECT_EQ(class_counts(dataset.test, 3), (Counts{4, 4, 4}));
}

TEST(Dataset, ResamplesImagesInMemoryToTheWantedSize) {
  const auto name = uneven_dataset();
  const auto dataset = load_dataset(name, {.train_samples = 8, .image_size = 6});
  EXPECT_EQ(dataset.train.shape(), (ImageShape{.channels = 3, .height = 6, .width = 6}));
  EXPECT_EQ(dataset_facts(name, {.image_size = 6}).shape.height, 6);
}

TEST(Dataset, IsShownLargerThanItIsStoredOnRequest) {
  const DatasetRequest request{.train_samples = 10, .test_samples = 10, .upsample_to = 48};
  const auto dataset = load_dataset("glyphs10", request);
  EXPECT_EQ(dataset.test.shape().height, 32);
  EXPECT_EQ(dataset.shown_shape(), (ImageShape{.channels = 3, .height = 48, .width = 48}));
  EXPECT_EQ(dataset_facts("glyphs10", request).shape, dataset.shown_shape());
}

TEST(Dataset, IsNotShownSmallerThanItIs) {
  EXPECT_EQ(error_of([] {
              load_dataset("glyphs10", {.train_samples = 10, .test_samples = 10, .upsample_to = 8});
            }),
            "data.upsample: must not be below the images' 32 pixels, got 8; data.image_size makes "
            "them smaller");
}

TEST(Dataset, IsNormalisedAsRequested) {
  const auto dataset = load_dataset(
      "glyphs10",
      {.train_samples = 10, .test_samples = 10, .normalisation = Normalisation::imagenet});
  EXPECT_EQ(dataset.mean, (std::array<double, 3>{0.485, 0.456, 0.406}));
}

TEST(Dataset, NamesClassesByNumberIfTheyHaveNoNames) {
  const auto name = dataset_spoilt_by([](Dataset&) {});
  EXPECT_EQ(load_dataset(name, {}).class_names, (std::vector<std::string>{"0", "1", "2"}));
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

TEST(Dataset, RejectsMoreValidationImagesThanThereAre) {
  const auto name = uneven_dataset();
  EXPECT_EQ(error_of([&] { load_dataset(name, {.validation_samples = 100}); }),
            "data.validation_samples: must be below the 100 training images, got 100");
  EXPECT_EQ(error_of([&] { load_dataset(name, {.validation_samples = -1}); }),
            "dataset '" + name + "': validation samples must not be below 0, got -1");
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

Images images() {
  return {.pixels = torch::arange(24, torch::kUInt8).view({2, 3, 2, 2}),
          .labels = torch::tensor({int64_t{1}, int64_t{0}})};
}

TEST(Fingerprint, IsThatOfTheContentWhateverItsLayout) {
  auto other = images();
  other.pixels = other.pixels.contiguous(torch::MemoryFormat::ChannelsLast);
  EXPECT_EQ(fingerprint(other), fingerprint(images()));
  EXPECT_EQ(fingerprint(images()).size(), 32U);
}

TEST(Fingerprint, ChangesWithEveryPixelAndLabel) {
  auto pixel = images();
  pixel.pixels[1][2][1][1] = 7;
  EXPECT_NE(fingerprint(pixel), fingerprint(images()));
  auto label = images();
  label.labels[0] = 0;
  EXPECT_NE(fingerprint(label), fingerprint(images()));
}

TEST(Fingerprint, OfNoImagesIsThatOfNothing) {
  EXPECT_EQ(fingerprint({}), "d41d8cd98f00b204e9800998ecf8427e");
}

TEST(Fingerprint, OfPicturesOnDiskIsThatOfTheirNames) {
  const auto files = [](const std::string& name) {
    return Images{.pixels = {},
                  .labels = torch::zeros({1}, torch::kInt64),
                  .files = std::make_shared<ImageFiles>(
                      LabelledFiles{.paths = {"/a/" + name}, .labels = {0}}, ImageFileOptions{})};
  };
  EXPECT_EQ(fingerprint(files("x.png")), fingerprint(files("x.png")));
  EXPECT_NE(fingerprint(files("x.png")), fingerprint(files("y.png")));
}

}  // namespace kelvin::dataset_test
