#include "kelvin/measures/rank_readings.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/measured.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

const Reading kLike = {.name = "anything",
                       .value = 7,
                       .layer = "conv1",
                       .split = "test",
                       .index = 3,
                       .definition = {{"matrix", "M"}, {"samples", 5}}};

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

}  // namespace
}  // namespace kelvin
