#include "kelvin/numerics/circle_solution.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/errors.h"

namespace kelvin::circle_solution_test {

TEST(CircleWeights, AreUnitVectorsThatSumToZero) {
  const auto weights = circle_weights(7);
  EXPECT_TRUE(torch::allclose(weights.norm(2, {1}), torch::ones({7}, torch::kFloat64)));
  EXPECT_LT(weights.sum(0).abs().max().item<double>(), 1e-12);
}

TEST(CircleProbability, OfTwoClassesIsASigmoid) {
  EXPECT_NEAR(circle_probability(2, 1.5), 1 / (1 + std::exp(-3)), 1e-15);
}

TEST(CircleProbability, IsThatOfTheLogits) {
  const auto weights = circle_weights(10);
  const auto logits = (5 * weights).matmul(weights.t());
  EXPECT_NEAR(torch::softmax(logits, 1)[3][3].item<double>(), circle_probability(10, 5), 1e-14);
}

TEST(CircleProbability, IsThatOfChanceWithoutAScale) {
  EXPECT_NEAR(circle_probability(10, 0), 0.1, 1e-15);
}

TEST(CircleScale, ReachesItsProbability) {
  for (const double probability : {0.5, 0.9, 0.999}) {
    EXPECT_NEAR(circle_probability(100, circle_scale(100, probability)), probability, 1e-12);
  }
}

TEST(CircleScale, GrowsWithTheSquareOfTheClasses) {
  EXPECT_NEAR(circle_scale(10, 0.9), 15, 0.5);
  EXPECT_NEAR(circle_scale(100, 0.9), 1465, 5);
  EXPECT_NEAR(circle_scale(1000, 0.9), 1.465e5, 500);
}

TEST(CheckCircle, HasRankTwoAndIsRightAboutEveryClass) {
  for (const int64_t classes : {3, 10, 100}) {
    const auto found = check_circle(classes, circle_scale(classes, 0.9), torch::kFloat64);
    EXPECT_EQ(found.rank, 2) << classes;
    EXPECT_LT(found.beyond, 1e-12) << classes;
    EXPECT_EQ(found.accuracy, 1) << classes;
    EXPECT_NEAR(found.smallest_probability, 0.9, 1e-9) << classes;
  }
}

TEST(CheckCircle, SurvivesFloat32) {
  const auto found = check_circle(1000, circle_scale(1000, 0.9), torch::kFloat32);
  EXPECT_EQ(found.rank, 2);
  EXPECT_EQ(found.accuracy, 1);
  EXPECT_GT(found.smallest_probability, 0.5);
}

TEST(CircleSolution, RejectsWhatHasNoCircle) {
  EXPECT_EQ(error_of([] { circle_weights(1); }),
            "circle_weights: classes must be from 2 to 100000, got 1");
  EXPECT_EQ(error_of([] { circle_probability(3, -1); }),
            "circle_probability: the scale must be a finite number, not below 0, got -1");
  EXPECT_EQ(error_of([] { circle_scale(10, 0.1); }),
            "circle_scale: the probability must be between 1 / classes and 1, got 0.1");
  EXPECT_EQ(error_of([] { circle_scale(10, 1); }),
            "circle_scale: the probability must be between 1 / classes and 1, got 1");
}

}  // namespace kelvin::circle_solution_test
