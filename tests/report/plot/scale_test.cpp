#include "kelvin/report/plot/scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kelvin::scale_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(LinearTicks, AreRoundAndInside) {
  EXPECT_EQ(linear_ticks(0, 1, 5), (std::vector<double>{0, 0.2, 0.4, 0.6, 0.8, 1}));
  EXPECT_EQ(linear_ticks(-3, 22, 5), (std::vector<double>{0, 5, 10, 15, 20}));
  EXPECT_TRUE(linear_ticks(1, 1, 5).empty());
  EXPECT_TRUE(linear_ticks(0, kInfinity, 5).empty());
}

TEST(LogTicks, ArePowersOfTenOrFinerOnAShortRange) {
  EXPECT_EQ(log_ticks(1e-3, 10, 5), (std::vector<double>{1e-3, 1e-2, 1e-1, 1, 10}));
  EXPECT_EQ(log_ticks(1, 10, 5), (std::vector<double>{1, 2, 5, 10}));
  EXPECT_LE(log_ticks(1e-30, 1e30, 5).size(), 8);
  EXPECT_TRUE(log_ticks(0, 10, 5).empty());
}

TEST(PaddedRange, LeavesTheAxisItsOwnLimitsAndIsNeverEmpty) {
  const auto given = padded_range({.low = 0.0}, {.low = 3, .high = 4}, 0.1);
  EXPECT_EQ(given.low, 0);
  EXPECT_DOUBLE_EQ(given.high, 4.1);
  for (const bool is_log : {false, true}) {
    for (const auto& data : {PlotRange{}, PlotRange{.low = 2, .high = 2}}) {
      const auto range = padded_range({.is_log = is_log}, data, 0.1);
      EXPECT_LT(range.low, range.high);
    }
  }
}

TEST(Scale, PutsLogarithmsAtEqualDistances) {
  const Scale scale({.is_log = true}, {.low = 1, .high = 100}, 0, 50);
  EXPECT_DOUBLE_EQ(scale(1), 0);
  EXPECT_DOUBLE_EQ(scale(10), 25);
  EXPECT_DOUBLE_EQ(scale(100), 50);
}

TEST(Scale, DoesNotOverflow) {
  const double largest = std::numeric_limits<double>::max();
  const Scale scale({}, {.low = -largest, .high = largest}, 0, 50);
  EXPECT_DOUBLE_EQ(scale(0), 25);
}

TEST(IsShown, NeedsAPositiveValueOnALogAxis) {
  EXPECT_TRUE(is_shown(-1, {}));
  EXPECT_FALSE(is_shown(-1, {.is_log = true}));
  EXPECT_FALSE(is_shown(0, {.is_log = true}));
  EXPECT_FALSE(is_shown(NAN, {}));
}

TEST(TickText, IsShort) {
  EXPECT_EQ(tick_text(0.25, {.is_percent = true}), "25 %");
  EXPECT_EQ(tick_text(1e-3, {.is_log = true}), "10⁻³");
  EXPECT_EQ(tick_text(10, {.is_log = true}), "10");
  EXPECT_EQ(tick_text(-2, {}), "−2");
}

TEST(HoverText, NamesThePlace) {
  EXPECT_EQ(hover_text(1, {.names = {"conv", "fc"}}), "fc");
  EXPECT_EQ(hover_text(0.256, {.is_percent = true}), "25.6 %");
}

}  // namespace kelvin::scale_test
