#include "kelvin/core/caveats.h"

#include <gtest/gtest.h>

namespace kelvin {
namespace {

using Sentences = std::vector<std::string>;

Reading rank_of(double value, int samples, int bound, const std::string& layer = "") {
  return {.name = layer.empty() ? "solution_rank" : "covariance_rank",
          .value = value,
          .layer = layer,
          .split = "test",
          .definition = {{"samples", samples}, {"upper_bound", bound}}};
}

Reading auroc_of(double value, const std::string& detector, double half_width = 0.01) {
  return {.name = "auroc",
          .value = value,
          .split = "test",
          .detector = detector,
          .ood = "svhn",
          .interval = Interval{value - half_width, value + half_width}};
}

TEST(Caveats, ThereAreNoneWhereNumbersMeanWhatTheySay) {
  EXPECT_EQ(caveats({}), Sentences{});
  EXPECT_EQ(caveats({rank_of(60, 10000, 99), rank_of(99, 10000, 99), auroc_of(0.9, "msp")}),
            Sentences{});
}

TEST(Caveats, NameARankThatIsAsLargeAsTheSamplesAllow) {
  EXPECT_EQ(caveats({rank_of(30, 30, 30)}),
            Sentences{"solution_rank: as large as 30 samples allow; with more it may be larger"});
  // Centring takes one.
  EXPECT_EQ(caveats({rank_of(29, 30, 29, "conv1"), rank_of(29, 30, 29, "fc")}),
            Sentences{"covariance_rank (conv1, fc): as large as 30 samples allow; with more it may "
                      "be larger"});
}

TEST(Caveats, TellWhatAMeasureSaysItself) {
  const Reading kappa{
      .name = "kappa", .value = 0.1, .definition = {{kCaveat, "the last probe is at chance"}}};
  EXPECT_EQ(caveats({kappa}), Sentences{"kappa: the last probe is at chance"});
}

TEST(Caveats, NameDetectorsThatAreWorseThanChanceTogether) {
  EXPECT_EQ(caveats({auroc_of(0.4, "msp"), auroc_of(0.3, "vim"), auroc_of(0.6, "neco")}),
            Sentences{"auroc against svhn (msp, vim): below 50 %: OOD samples score higher than "
                      "test samples, the detector is misled"});
}

TEST(Caveats, AreNotGivenForDetectionThatMayBeChance) {
  EXPECT_EQ(caveats({auroc_of(0.49, "msp", 0.05)}), Sentences{});
}

TEST(Caveats, AreOfTheReadingThatIsShownAndNotOfItsVariants) {
  EXPECT_EQ(caveats({rank_of(20, 30, 30), rank_of(30, 30, 30)}), Sentences{});
  auto of_curve = rank_of(30, 30, 30);
  of_curve.index = 3;
  EXPECT_EQ(caveats({of_curve}), Sentences{});
}

TEST(Caveats, AreGivenOnceForAllNumbersOfADetector) {
  Readings readings;
  for (const char* name : {"auroc", "fpr95_id"}) {
    readings.push_back({.name = name,
                        .value = 1,
                        .detector = "msp",
                        .ood = "svhn",
                        .definition = {{kCaveat, "from one OOD sample"}}});
  }
  EXPECT_EQ(caveats(readings), Sentences{"detection against svhn (msp): from one OOD sample"});
}

}  // namespace
}  // namespace kelvin
