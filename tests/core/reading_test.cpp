#include "kelvin/core/reading.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kelvin::reading_test {

TEST(FieldsOf, LeaveOutWhatIsNotSet) {
  EXPECT_EQ(fields_of({.name = "accuracy", .value = 0.5}).dump(),
            R"({"name":"accuracy","value":0.5})");
}

TEST(FieldsOf, HoldEverythingButTheDefinitionInAFixedOrder) {
  const Reading reading{.name = "auroc",
                        .value = 0.75,
                        .layer = "layer3",
                        .split = "test",
                        .detector = "msp",
                        .ood = "textures",
                        .index = 4,
                        .definition = {{"matrix", "logits"}}};
  EXPECT_EQ(fields_of(reading).dump(),
            R"({"name":"auroc","value":0.75,"layer":"layer3","split":"test","detector":"msp",)"
            R"("ood":"textures","index":4})");
}

TEST(FieldsOf, TellBothEndsOfAnInterval) {
  const Reading reading{.name = "kappa", .value = 0.5, .interval = Interval{0.25, 0.75}};
  EXPECT_EQ(fields_of(reading).dump(), R"({"name":"kappa","value":0.5,"low":0.25,"high":0.75})");
}

TEST(FieldsOf, KeepTheIndexZero) {
  EXPECT_EQ(fields_of({.name = "singular_value", .value = 1, .index = 0}).at("index"), 0);
}

TEST(FieldsOf, KeepEveryBitOfTheValue) {
  for (const double value : {0.1, 1.0 / 3, 1e-308, 123456789.123456789}) {
    const auto text = fields_of({.name = "x", .value = value}).dump();
    EXPECT_EQ(nlohmann::json::parse(text).at("value").get<double>(), value);
  }
}

TEST(Reading, HasAnEmptyObjectForItsDefinitionByDefault) {
  EXPECT_EQ(Reading{}.definition.dump(), "{}");
}

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

}  // namespace kelvin::reading_test
