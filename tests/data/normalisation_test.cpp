#include "kelvin/data/normalisation.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

constexpr ChannelStatistics kOwn = {.mean = {0.1, 0.2, 0.3}, .deviation = {0.4, 0.5, 0.6}};

TEST(NormalisationByName, UsesTheDatasetsOwnStatistics) {
  const auto used = statistics_of(normalisation_of("dataset"), kOwn);
  EXPECT_EQ(used.mean, kOwn.mean);
  EXPECT_EQ(used.deviation, kOwn.deviation);
}

// The numbers that torchvision's documentation gives for its weights.
TEST(NormalisationByName, UsesThoseOfImageNet) {
  const auto used = statistics_of(normalisation_of("imagenet"), kOwn);
  EXPECT_EQ(used.mean, (std::array<double, 3>{0.485, 0.456, 0.406}));
  EXPECT_EQ(used.deviation, (std::array<double, 3>{0.229, 0.224, 0.225}));
}

TEST(NormalisationByName, MapsBlackAndWhiteToMinusAndPlusOne) {
  const auto used = statistics_of(normalisation_of("half"), kOwn);
  EXPECT_EQ((0 - used.mean[1]) / used.deviation[1], -1);
  EXPECT_EQ((1 - used.mean[1]) / used.deviation[1], 1);
}

TEST(NormalisationByName, LeavesPixelsAsTheyAre) {
  const auto used = statistics_of(normalisation_of("none"), kOwn);
  EXPECT_EQ((0.7 - used.mean[2]) / used.deviation[2], 0.7);
}

TEST(NormalisationByName, RejectsOtherNames) {
  EXPECT_EQ(error_of([] { normalisation_of("zca"); }),
            "data.normalisation: must be dataset, imagenet, half or none, got 'zca'");
}

}  // namespace
}  // namespace kelvin
