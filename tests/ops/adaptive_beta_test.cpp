#include "kelvin/ops/adaptive_beta.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::adaptive_beta_test {

constexpr double kPeak = 4.4125;  // entropy of the published polynomial's maximum
constexpr double kBetaAtPeak = 2.42139;

double beta(double entropy, const AdaptiveSoftmaxOptions& options = {}) {
  return adaptive_beta(torch::tensor(entropy, torch::kFloat64), options).item<double>();
}

TEST(AdaptiveBeta, HasTheValuesOfThePublishedPolynomial) {
  EXPECT_NEAR(beta(1), 1.270, 1e-12);
  EXPECT_NEAR(beta(1.5), 1.8456, 1e-4);
  EXPECT_NEAR(beta(2), 2.099, 1e-12);
  EXPECT_NEAR(beta(std::log(16)), 2.2265, 1e-4);
  EXPECT_NEAR(beta(3), 2.25, 1e-12);
  EXPECT_NEAR(beta(4), 2.389, 1e-12);
  EXPECT_NEAR(beta(5), 2.294, 1e-12);
  EXPECT_NEAR(beta(5.5), 1.8466, 1e-4);
  EXPECT_NEAR(beta(kPeak), kBetaAtPeak, 1e-5);
  EXPECT_GT(beta(kPeak), beta(kPeak - 0.1));
  EXPECT_GT(beta(kPeak), beta(kPeak + 0.1));
}

TEST(AdaptiveBeta, TakesTheHighestPowerFirst) {
  // In the wrong order the published numbers would give 33.9 at 3 nats and 1 at 5.
  AdaptiveSoftmaxOptions turned;
  std::reverse(turned.coefficients.begin(), turned.coefficients.end());
  EXPECT_LT(beta(3, turned), 2);
  EXPECT_GT(std::abs(beta(3, turned) - beta(3)), 0.5);
  const AdaptiveSoftmaxOptions powers{.coefficients = {1, 0, 0, 0, 2}};
  EXPECT_DOUBLE_EQ(beta(3, powers), 81 + 2);
}

TEST(AdaptiveBeta, IsAboveOneBetweenTheRootsOnly) {
  EXPECT_EQ(beta(0), 1);
  EXPECT_EQ(beta(0.5), 1);
  EXPECT_EQ(beta(0.8485), 1);
  EXPECT_NEAR(beta(0.84858), 1, 3e-5);
  EXPECT_GT(beta(0.8487), 1);
  EXPECT_GT(beta(5.9445), 1);
  EXPECT_NEAR(beta(5.94452), 1, 5e-5);
  EXPECT_EQ(beta(5.9446), 1);
  EXPECT_EQ(beta(11), 1);
}

TEST(AdaptiveBeta, HasAFloorAndAThreshold) {
  EXPECT_DOUBLE_EQ(beta(7, {.floor = 1.5}), 1.5);
  EXPECT_NEAR(beta(0.7, {.floor = 0.5}), 0.6795, 1e-3);
  EXPECT_DOUBLE_EQ(beta(0.4, {.floor = 1.5}), 1);
  EXPECT_DOUBLE_EQ(beta(2, {.threshold = 2}), 1);
  EXPECT_NEAR(beta(2.0001, {.threshold = 2}), 2.099, 1e-3);
}

TEST(AdaptiveBeta, CanHoldOrGrowPastThePeak) {
  for (const auto past : {PastThePeak::hold, PastThePeak::grow}) {
    const AdaptiveSoftmaxOptions options{.past_the_peak = past};
    for (const double entropy : {0.3, 1.0, 3.0, 4.4})
      EXPECT_EQ(beta(entropy, options), beta(entropy));
  }
  for (const double entropy : {4.42, 6.0, 11.0, 30.0}) {
    EXPECT_NEAR(beta(entropy, {.past_the_peak = PastThePeak::hold}), kBetaAtPeak, 1e-5);
    EXPECT_NEAR(beta(entropy, {.past_the_peak = PastThePeak::grow}), kBetaAtPeak * entropy / kPeak,
                3e-4 * entropy);
  }
  // 2 H has no peak; H (10 - H) / 5 has one at 5, where it is 5.
  const AdaptiveSoftmaxOptions line{.coefficients = {0, 0, 0, 2, 0},
                                    .past_the_peak = PastThePeak::hold};
  EXPECT_DOUBLE_EQ(beta(30, line), 60);
  const AdaptiveSoftmaxOptions parabola{.coefficients = {0, 0, -0.2, 2, 0},
                                        .past_the_peak = PastThePeak::hold};
  EXPECT_NEAR(beta(30, parabola), 5, 1e-12);
}

// What kernels are told of the polynomial is the same function.
TEST(AdaptiveCurve, IsBetaInNumbers) {
  for (const auto past : {PastThePeak::fall, PastThePeak::hold, PastThePeak::grow}) {
    const auto curve = adaptive_curve({.past_the_peak = past});
    for (const double entropy : {0.6, 3.0, 4.4, 4.5, 6.0, 9.0}) {
      double value = 0;
      for (const double coefficient : curve.coefficients) value = value * entropy + coefficient;
      if (entropy > curve.bend) {
        value = (entropy - curve.bend) * curve.slope_beyond + curve.at_bend;
      }
      EXPECT_NEAR(std::max(value, curve.floor), beta(entropy, {.past_the_peak = past}), 1e-12);
    }
  }
}

TEST(AdaptiveCurve, SuitsKernelsWithinFloats) {
  EXPECT_TRUE(suits_adaptive_kernel({}));
  EXPECT_FALSE(suits_adaptive_kernel({.floor = 1e-20}));
  EXPECT_FALSE(suits_adaptive_kernel({.temperature = 1e20}));
}

}  // namespace kelvin::adaptive_beta_test
