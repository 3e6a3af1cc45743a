#include "kelvin/measures/spectrum_readings.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "kelvin/math/spectrum.h"
#include "tests/support/measured.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

LayerValues exact_values() {
  return {
      .layer = "fc",
      .protocol = "sketch",
      .values = {.projected = doubles({1, 0.1, 0.02, 0}), .corrected = doubles({1, 0.1, 0.02, 0})},
      .samples = 100,
      .features = 4,
      .width = 4};
}

TEST(SpectrumReadings, CountEigenvaluesOfTheCovariance) {
  EXPECT_EQ(covariance_rank(exact_values(), 1e-2), 1);  // 1e-2 itself is not above
  EXPECT_EQ(covariance_rank(exact_values(), 1e-3), 2);
  EXPECT_EQ(covariance_rank(exact_values(), 1e-4), 3);
}

TEST(SpectrumReadings, OfAllFeaturesHaveNoDoubts) {
  const auto bounds = rank_bounds(exact_values(), 1e-3);
  EXPECT_EQ(bounds.low, 2);
  EXPECT_EQ(bounds.high, 2);
  EXPECT_TRUE(bounds.is_reliable);
  const auto readings = spectrum_readings(exact_values(), 1e-3, 2);
  EXPECT_EQ(readings.front().name, "covariance_rank");
  EXPECT_EQ(readings.front().value, 2);
  EXPECT_EQ(readings_of(readings, "covariance_rank").size(), 3U);
  EXPECT_EQ(reading_of(readings, "numerical_rank").value, 3);
  EXPECT_EQ(readings_of(readings, "singular_value").size(), 2U);
}

TEST(SpectrumReadings, SayHowLargeARankCanBe) {
  auto values = exact_values();
  values.samples = 4;
  const auto readings = spectrum_readings(values, 1e-3, 2);
  for (const char* name : {"covariance_rank", "numerical_rank", "effective_rank", "rankme",
                           "stable_rank", "participation_ratio"}) {
    EXPECT_EQ(readings_of(readings, name).at(0).definition["upper_bound"], 3) << name;
  }
  EXPECT_FALSE(readings.back().definition.contains("upper_bound"));
}

TEST(SpectrumReadings, OfRankMeCountTheValueThatCentringTakes) {
  auto values = exact_values();
  values.values.projected = values.values.corrected = doubles({2, 1});
  values.samples = 3;
  const auto readings = spectrum_readings(values, 1e-3, 9);
  EXPECT_EQ(reading_of(readings, "rankme").value, rankme(doubles({2, 1, 0})));
  EXPECT_NE(reading_of(readings, "rankme").value, rankme(doubles({2, 1})));
  EXPECT_DOUBLE_EQ(reading_of(readings, "effective_rank").value, effective_rank(doubles({2, 1})));
  EXPECT_EQ(readings_of(readings, "singular_value").size(), 2U);
}

TEST(SpectrumReadings, OfASketchSubtractWhatItsTailAdds) {
  auto values = exact_values();
  // One large direction; the tail of 90 has 0.09 of its variance, 1e-3 for each of the 90 numbers.
  values.values.projected = torch::cat({doubles({1}), torch::full({90}, 0.0316, torch::kFloat64)});
  values.values.corrected = doubles({0.75, 0.5});
  values.features = 1000;
  values.width = 100;
  values.anchors = 10;
  values.is_sketched = true;
  const auto bounds = rank_bounds(values, 0.9e-3);
  EXPECT_EQ(covariance_rank(values, 0.9e-3), 91);
  EXPECT_EQ(bounds.low, 1);
  EXPECT_EQ(bounds.high, 99);
  EXPECT_FALSE(bounds.is_reliable);
  EXPECT_TRUE(rank_bounds(values, 1e-2).is_reliable);
  const auto readings = spectrum_readings(values, 0.9e-3, 1);
  EXPECT_EQ(readings.back().name, "singular_value");
  EXPECT_EQ(readings.back().value, 0.75);
  EXPECT_TRUE(readings.back().definition.contains("correction"));
  const auto& reading = readings.front();
  EXPECT_EQ(reading.definition["sketch"], 100);
  EXPECT_EQ(reading.definition["is_reliable"], false);
  EXPECT_EQ(reading.definition["upper_bound"], 99);
}

TEST(SpectrumReadings, OfChosenFeaturesSayHowMany) {
  auto values = exact_values();
  values.features = 9000;
  values.width = 8000;
  const auto reading = spectrum_readings(values, 1e-3, 0).front();
  EXPECT_EQ(reading.definition["features_used"], 8000);
  EXPECT_FALSE(reading.definition.contains("sketch"));
}

}  // namespace
}  // namespace kelvin
