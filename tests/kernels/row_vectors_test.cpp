#include "kelvin/kernels/row_vectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace kelvin::row_vectors_test {

constexpr int kLanes = 4;  // of the instruction set that tests are compiled for
constexpr float kInfinity = std::numeric_limits<float>::infinity();

float power_of(float d, const PowerScale& scale) {
  return powers<kLanes>(larger(all_lanes<kLanes>(scale.least), all_lanes<kLanes>(d)), scale)[1];
}

TEST(Powers, AreExponentialsOfSinglePrecision) {
  for (const double factor : {1.0, 0.01, 2.42139, 1e-15, 1e10}) {
    const auto scale = power_scale(factor);
    double worst = 0;
    for (double y = 0; y > -87; y -= 0.00731) {
      const auto d = static_cast<float>(y / factor);
      const double exact = std::exp(static_cast<double>(d) * factor);
      // Without fused products, the one with the exponent's factor is rounded.
      const double allowed = 3 + 1.5 * std::abs(y);
      const double units = std::abs(static_cast<double>(power_of(d, scale)) / exact - 1) * 0x1p24;
      worst = std::max(worst, units / allowed);
    }
    EXPECT_LT(worst, 1) << factor;
  }
}

TEST(Powers, AreExactAtBothEnds) {
  for (const double factor : {1.0, 2.42139, 1e-15, 1e10}) {
    const auto scale = power_scale(factor);
    EXPECT_EQ(power_of(0, scale), 1);
    for (const float d : {static_cast<float>(-89 / factor), -3e38F, -kInfinity}) {
      EXPECT_EQ(power_of(d, scale), 0) << factor;
    }
    EXPECT_TRUE(std::isnan(power_of(std::nanf(""), scale)));
  }
}

TEST(Logarithm, IsRightToSevenDigits) {
  double worst = 0;
  for (double x = 0.01; x < 1e6; x *= 1.0007) {
    const auto rounded = static_cast<float>(x);
    worst = std::max(worst, std::abs(logarithm(rounded) - std::log(static_cast<double>(rounded))));
  }
  EXPECT_LT(worst, 1e-7);
  EXPECT_EQ(logarithm(1), 0);
}

TEST(CombinedLanes, AreThoseOfEachRowInItsPlace) {
  Floats<kLanes> rows[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      rows[i][lane] = static_cast<float>(100 * i + lane * lane);
    }
  }
  const auto sums = combined_lanes<kLanes>(rows, [](auto a, auto b) { return a + b; });
  for (int i = 0; i < kLanes; ++i) EXPECT_EQ(sums[i], static_cast<float>(400 * i + 14));
}

TEST(SumOfLanes, AddsThemAll) {
  EXPECT_EQ(sum_of_lanes<4>(Floats<4>{1, 2, 4, 8}), 15);
  EXPECT_EQ(sum_of_lanes<4>(Floats<4>{-1, 0, 0, 1}), 0);
}

TEST(Larger, KeepsTheSecondIfOneIsNoNumber) {
  const auto nan = all_lanes<kLanes>(std::nanf(""));
  const auto two = all_lanes<kLanes>(2);
  EXPECT_EQ(larger(nan, two)[0], 2);
  EXPECT_TRUE(std::isnan(larger(two, nan)[0]));
  EXPECT_EQ(larger(two, all_lanes<kLanes>(3))[3], 3);
}

TEST(LoadFirst, FillsTheOtherLanesWhetherItReadsThemOrNot) {
  const std::vector<float> numbers = {1, 2, 3, 4};
  for (const bool may_read_on : {false, true}) {
    for (int64_t count = 1; count < kLanes; ++count) {
      const auto lanes = load_first<kLanes>(numbers.data(), count, may_read_on, -kInfinity);
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        EXPECT_EQ(lanes[lane], lane < count ? static_cast<float>(lane + 1) : -kInfinity);
      }
    }
  }
}

TEST(StoreFirst, WritesTheOthersOnlyIfItMay) {
  const Floats<kLanes> lanes = {1, 2, 3, 4};
  std::vector<float> numbers(kLanes, 9);
  store_first<kLanes>(numbers.data(), 2, /*may_write_on=*/false, lanes);
  EXPECT_EQ(numbers, (std::vector<float>{1, 2, 9, 9}));
  store_first<kLanes>(numbers.data(), 2, /*may_write_on=*/true, lanes);
  EXPECT_EQ(numbers, (std::vector<float>{1, 2, 3, 4}));
}

TEST(StoreLanes, RoundsToTheNearestBfloat16) {
  std::vector<float> values = {0, -0.F, 1, 1.00390625F, 1.01171875F, 3.4e38F, 1e-40F};
  for (const float value : {kInfinity, -kInfinity, -0.3337F, 77.7F, 6.02e23F}) {
    values.push_back(value);
  }
  values.resize(12, std::nanf(""));
  for (size_t i = 0; i < values.size(); i += kLanes) {
    Bf16 stored[kLanes];
    Bf16 again[kLanes];
    const auto lanes = load_lanes<kLanes>(values.data() + i);
    store_lanes<kLanes>(stored, lanes);
    store_lanes<kLanes>(again, load_lanes<kLanes>(stored));
    for (size_t lane = 0; lane < kLanes; ++lane) {
      Bf16 expected;
      put(values[i + lane], expected);
      EXPECT_EQ(stored[lane].bits, expected.bits) << values[i + lane];
      EXPECT_EQ(again[lane].bits, expected.bits);
    }
  }
}

TEST(InstructionSets, AreKnown) {
  EXPECT_GE(widest_instruction_set(), InstructionSet::generic);
  EXPECT_EQ(widest_instruction_set(), widest_instruction_set());
}

}  // namespace kelvin::row_vectors_test
