#include "kelvin/measures/spectrum_readings.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "kelvin/numerics/spectrum.h"
#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/tensors.h"

namespace kelvin::spectrum_readings_test {

const Reading kLike = {.name = "anything",
                       .value = 7,
                       .layer = "conv1",
                       .split = "test",
                       .index = 3,
                       .definition = {{"matrix", "M"}, {"samples", 5}}};

TEST(ReportedGammas, BeginWithTheChosenOne) {
  EXPECT_EQ(reported_gammas(1e-3), (std::vector<double>{1e-3, 1e-2, 1e-4}));
  EXPECT_EQ(reported_gammas(0.5), (std::vector<double>{0.5, 1e-2, 1e-3, 1e-4}));
}

TEST(RankReadings, HasTheFourRanksInThisOrder) {
  // Squares 4, 1, 1; shares 1/2, 1/4, 1/4.
  const auto readings = rank_readings(doubles({2, 1, 1}), kLike);
  ASSERT_EQ(readings.size(), 4U);
  EXPECT_EQ(readings[0].name, "effective_rank");
  EXPECT_NEAR(readings[0].value, std::pow(2, 1.5), 1e-12);
  EXPECT_EQ(readings[1].name, "rankme");
  EXPECT_NEAR(readings[1].value, std::pow(2, 1.5), 1e-5);
  EXPECT_NE(readings[1].value, readings[0].value);
  EXPECT_EQ(readings[2].name, "stable_rank");
  EXPECT_NEAR(readings[2].value, 6.0 / 4, 1e-12);
  EXPECT_EQ(readings[3].name, "participation_ratio");
  EXPECT_NEAR(readings[3].value, 36.0 / 18, 1e-12);
}

TEST(RankReadings, TakesTheRestFromTheReadingItIsLike) {
  std::set<std::string> formulas;
  for (const auto& reading : rank_readings(doubles({2, 1}), kLike)) {
    EXPECT_EQ(reading.layer, "conv1");
    EXPECT_EQ(reading.split, "test");
    EXPECT_EQ(reading.index, 3);
    auto definition = reading.definition;
    formulas.insert(definition.at("formula").get<std::string>());
    definition.erase("formula");
    EXPECT_EQ(definition, kLike.definition);
  }
  EXPECT_EQ(formulas.size(), 4U);
}

TEST(RankReadings, PutsThePrefixBeforeEachName) {
  const auto plain = rank_readings(doubles({3, 1}), kLike);
  const auto readings = rank_readings(doubles({3, 1}), kLike, "post_softmax_");
  ASSERT_EQ(readings.size(), plain.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(readings[i].name, "post_softmax_" + plain[i].name);
    EXPECT_EQ(readings[i].value, plain[i].value);
  }
}

TEST(RankReadings, IgnoresOrderAndScale) {
  const auto expected = rank_readings(doubles({5, 3, 2, 0}), kLike);
  expect_same(rank_readings(doubles({0, 3, 5, 2}), kLike), expected, 1e-12);
  expect_same(rank_readings(1e150 * doubles({5, 3, 2, 0}), kLike), expected, 1e-12);
  expect_same(rank_readings(doubles({5, 3, 2, 0}).to(torch::kFloat32), kLike), expected, 1e-12);
}

TEST(RankReadings, OfAZeroMatrixAreNone) {
  EXPECT_TRUE(rank_readings(torch::zeros({3}), kLike).empty());
}

TEST(RankReadings, OfOneDirectionAreAllOne) {
  const auto readings = rank_readings(doubles({0.25}), kLike);
  ASSERT_EQ(readings.size(), 4U);
  for (const auto& reading : readings) EXPECT_NEAR(reading.value, 1, 1e-6) << reading.name;
}

TEST(RankReadings, RejectsWhatIsNoFiniteList) {
  EXPECT_EQ(error_of([] {
              rank_readings(torch::ones({2, 2}), kLike);
            }),
            "rank_readings: needs a list of singular values, got [2, 2]");
  EXPECT_EQ(error_of([] { rank_readings(torch::ones({0}), kLike); }),
            "rank_readings: needs a list of singular values, got [0]");
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(error_of([&] {
                rank_readings(doubles({1, value}), kLike);
              }),
              "rank_readings: singular values must be finite, got a NaN or an infinity");
  }
}

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

}  // namespace kelvin::spectrum_readings_test
