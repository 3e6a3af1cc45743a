#include "kelvin/data/augmentation.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "tests/support/errors.h"

namespace kelvin::augmentation_test {

constexpr ChannelStatistics kOwn = {.mean = {0.1, 0.2, 0.3}, .std_dev = {0.4, 0.5, 0.6}};

TEST(NormalisationByName, UsesTheDatasetsOwnStatistics) {
  const auto used = statistics_of(normalisation_of("dataset"), kOwn);
  EXPECT_EQ(used.mean, kOwn.mean);
  EXPECT_EQ(used.std_dev, kOwn.std_dev);
}

// The numbers that torchvision's documentation gives for its weights.
TEST(NormalisationByName, UsesThoseOfImageNet) {
  const auto used = statistics_of(normalisation_of("imagenet"), kOwn);
  EXPECT_EQ(used.mean, (std::array<double, 3>{0.485, 0.456, 0.406}));
  EXPECT_EQ(used.std_dev, (std::array<double, 3>{0.229, 0.224, 0.225}));
}

TEST(NormalisationByName, MapsBlackAndWhiteToMinusAndPlusOne) {
  const auto used = statistics_of(normalisation_of("half"), kOwn);
  EXPECT_EQ((0 - used.mean[1]) / used.std_dev[1], -1);
  EXPECT_EQ((1 - used.mean[1]) / used.std_dev[1], 1);
}

TEST(NormalisationByName, LeavesPixelsAsTheyAre) {
  const auto used = statistics_of(normalisation_of("none"), kOwn);
  EXPECT_EQ((0.7 - used.mean[2]) / used.std_dev[2], 0.7);
}

TEST(NormalisationByName, RejectsOtherNames) {
  EXPECT_EQ(error_of([] { normalisation_of("zca"); }),
            "data.normalisation: must be dataset, imagenet, half or none, got 'zca'");
}

TEST(Augmentation, KnowsItsNames) {
  EXPECT_EQ(augmentation_of("none"), Augmentation::none);
  EXPECT_EQ(augmentation_of("flip"), Augmentation::flip);
  EXPECT_EQ(augmentation_of("crop"), Augmentation::crop);
  EXPECT_EQ(augmentation_of("crop-flip"), Augmentation::crop_flip);
  EXPECT_EQ(augmentation_of("resized-crop-flip"), Augmentation::resized_crop_flip);
  EXPECT_EQ(error_of([] { augmentation_of("mixup"); }),
            "data.augment: must be one of crop, crop-flip, flip, none, resized-crop-flip, got "
            "'mixup'");
}

TEST(Augmentation, LeavesImagesAloneIfThereIsNone) {
  auto stream = view_stream(1, 2, 3);
  const auto view = draw_view(Augmentation::none, stream);
  EXPECT_EQ(view.shift_x, 0);
  EXPECT_EQ(view.shift_y, 0);
  EXPECT_FALSE(view.is_flipped);
}

TEST(Augmentation, ShowsEachOfTheWindowsEquallyOftenAndFlipsHalfOfThem) {
  constexpr int64_t kDraws = 81 * 400;
  std::array<std::array<int64_t, 9>, 9> counts = {};
  int64_t flips = 0;
  for (int64_t index = 0; index < kDraws; ++index) {
    auto stream = view_stream(5, 1, index);
    const auto view = draw_view(Augmentation::crop_flip, stream);
    ++counts.at(static_cast<size_t>(view.shift_y + 4)).at(static_cast<size_t>(view.shift_x + 4));
    flips += view.is_flipped ? 1 : 0;
  }
  // 400 expected of each window and half of the flips; five standard deviations are 100 and 450.
  for (const auto& row : counts) {
    for (const auto count : row) EXPECT_NEAR(static_cast<double>(count), 400, 100);
  }
  EXPECT_NEAR(static_cast<double>(flips), kDraws / 2.0, 450);
}

TEST(Augmentation, DrawsAnewForEverySeedEpochAndIndex) {
  const auto bits = [](uint64_t seed, int64_t epoch, int64_t index) {
    return view_stream(seed, epoch, index).bits();
  };
  EXPECT_EQ(bits(1, 2, 3), bits(1, 2, 3));
  EXPECT_NE(bits(1, 2, 3), bits(2, 2, 3));
  EXPECT_NE(bits(1, 2, 3), bits(1, 3, 3));
  EXPECT_NE(bits(1, 2, 3), bits(1, 2, 4));
}

TEST(Augmentation, DrawsAnewForEveryViewOfABatch) {
  const auto bits = [](int64_t epoch, int64_t index, int64_t view) {
    return view_stream(1, epoch, index, view).bits();
  };
  EXPECT_EQ(bits(2, 3, 0), view_stream(1, 2, 3).bits()) << "the first is that of a batch of one";
  std::set<uint64_t> seen;
  for (int64_t epoch = 0; epoch < 10; ++epoch) {
    for (int64_t index = 0; index < 10; ++index) {
      for (int64_t view = 0; view < 3; ++view) seen.insert(bits(epoch, index, view));
    }
  }
  EXPECT_EQ(seen.size(), 300U);
}

TEST(RandomBox, LiesInThePictureAndHasTheAreaAndRatioItShould) {
  const PictureSize size{.width = 500, .height = 375};
  double least = 1;
  double most = 0;
  for (int64_t index = 0; index < 5000; ++index) {
    auto stream = view_stream(1, 0, index);
    const auto box = draw_box(size, stream);
    EXPECT_GE(box.left, 0);
    EXPECT_GE(box.top, 0);
    EXPECT_LE(box.left + box.width, 500);
    EXPECT_LE(box.top + box.height, 375);
    const double share = box.width * box.height / (500 * 375);
    EXPECT_NEAR(std::log(box.width / box.height), 0, std::log(4.0 / 3.0) + 0.02);
    least = std::min(least, share);
    most = std::max(most, share);
  }
  EXPECT_NEAR(least, 0.08, 0.01);
  EXPECT_GT(most, 0.95);
}

TEST(RandomBox, TakesTheMiddleOfPicturesThatAreTooNarrow) {
  auto stream = view_stream(1, 0, 0);
  const auto box = draw_box({.width = 4, .height = 4000}, stream);
  EXPECT_EQ(box.left, 0);
  EXPECT_EQ(box.width, 4);
  EXPECT_EQ(box.height, 5) << "4 times 4/3, rounded";
  EXPECT_EQ(box.top, 1997);
}

TEST(RandomBox, TakesAllOfASinglePixel) {
  auto stream = view_stream(1, 0, 0);
  const auto box = draw_box({.width = 1, .height = 1}, stream);
  EXPECT_EQ(box.width, 1);
  EXPECT_EQ(box.height, 1);
}

}  // namespace kelvin::augmentation_test
