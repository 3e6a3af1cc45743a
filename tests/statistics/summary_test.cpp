#include "kelvin/statistics/summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/python.h"

namespace kelvin::summary_test {

TEST(Summary, OfKnownValues) {
  const auto summary = summarise({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(summary.count, 8);
  EXPECT_DOUBLE_EQ(summary.mean, 5);
  EXPECT_DOUBLE_EQ(summary.deviation, std::sqrt(32.0 / 7));
  EXPECT_NEAR(summary.half_width, 2.364624 * std::sqrt(32.0 / 7 / 8), 1e-6);
  EXPECT_EQ(summary.smallest, 2);
  EXPECT_EQ(summary.largest, 9);
}

// For -1 and 1 the standard error is 1 and so the half width Student's quantile itself.
TEST(Summary, OfTwoValuesIsAsWideAsTheCauchyQuantile) {
  EXPECT_NEAR(summarise({-1, 1}).half_width, std::tan(0.475 * std::acos(-1.0)), 1e-6);
}

TEST(Summary, MovesWithItsValues) {
  const auto summary = summarise({1, 2, 4});
  const auto moved = summarise({1001, 1002, 1004});
  EXPECT_NEAR(moved.mean, summary.mean + 1000, 1e-9);
  EXPECT_NEAR(moved.deviation, summary.deviation, 1e-9);
  EXPECT_NEAR(moved.half_width, summary.half_width, 1e-9);
}

TEST(Summary, GrowsWithItsValues) {
  const auto summary = summarise({1, 2, 4});
  const auto grown = summarise({8, 16, 32});
  EXPECT_NEAR(grown.mean, 8 * summary.mean, 1e-12);
  EXPECT_NEAR(grown.half_width, 8 * summary.half_width, 1e-12);
}

TEST(Summary, OfEqualValuesHasNoWidth) {
  const auto summary = summarise({0.1, 0.1, 0.1, 0.1});
  EXPECT_NEAR(summary.deviation, 0, 1e-16);
  EXPECT_NEAR(summary.half_width, 0, 1e-16);
}

TEST(Summary, OfOneValueIsThatValue) {
  const auto summary = summarise({-3.5});
  EXPECT_EQ(summary.count, 1);
  EXPECT_EQ(summary.mean, -3.5);
  EXPECT_EQ(summary.deviation, 0);
  EXPECT_EQ(summary.half_width, 0);
  EXPECT_EQ(summary.smallest, -3.5);
  EXPECT_EQ(summary.largest, -3.5);
}

TEST(Summary, OfNoValuesIsRejected) {
  EXPECT_EQ(error_of([] { summarise({}); }), "summarise: needs at least one value, got none");
}

// With values -1 and 1, half each, the half width over the standard error is the quantile.
TEST(Summary, AgreesWithScipyOnStudentsQuantiles) {
  std::istringstream expected(
      python_output("from scipy.stats import t\n"
                    "for n in range(1, 61): print(float(t.ppf(0.975, n)))\n"
                    "print(float(t.ppf(0.975, 999)))"));
  std::vector<double> values = {1};
  const auto compare = [&] {
    const auto summary = summarise(values);
    const double error = summary.deviation / std::sqrt(static_cast<double>(summary.count));
    double quantile = 0;
    ASSERT_TRUE(expected >> quantile);
    EXPECT_NEAR(summary.half_width / error, quantile, 1e-5) << "for " << summary.count << " values";
  };
  while (values.size() < 61) {
    values.push_back(-values.back());
    compare();
  }
  while (values.size() < 1000) values.push_back(-values.back());
  compare();
}

}  // namespace kelvin::summary_test
