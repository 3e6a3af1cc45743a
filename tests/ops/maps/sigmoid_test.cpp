#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/simplex.h"
#include "tests/support/tensors.h"

namespace kelvin::sigmoid_test {

// sigmoid(-ln n) is 1 / (n + 1).
TEST(Sigmoid, OfEqualLogitsIsAlmostADistribution) {
  expect_close(mapped("sigmoid", torch::zeros(9, torch::kFloat64)), torch::full(9, 0.1), 1e-8);
  EXPECT_NEAR(mapped("sigmoid", torch::zeros(999, torch::kFloat64)).sum().item<double>(), 0.999,
              1e-12);
}

TEST(Sigmoid, HasTheBiasItIsGiven) {
  const auto logits = noise({4, 7}, 1);
  expect_close(mapped("sigmoid", logits, {{"bias", 0.5}, {"length_bias", false}}),
               1 / (1 + (-logits - 0.5).exp()), 1e-15);
  expect_close(mapped("sigmoid", logits, {{"bias", std::log(7)}}), torch::sigmoid(logits), 1e-15);
}

TEST(Sigmoid, TakesEachLogitByItself) {
  auto logits = noise({1, 7}, 2);
  const auto before = mapped("sigmoid", logits);
  logits[0][3] = 1e6;
  const auto after = mapped("sigmoid", logits);
  EXPECT_EQ(after[0][3].item<double>(), 1);
  after[0][3] = before[0][3];
  expect_close(after, before, 0);
  EXPECT_EQ(mapped("sigmoid", doubles({-1e6, 1e6})).sum().item<double>(), 1);
  EXPECT_EQ(mapped("sigmoid", doubles({1e6, 1e6})).sum().item<double>(), 2);
}

TEST(Sigmoid, RejectsABiasThatIsNotFinite) {
  EXPECT_EQ(error_of([] {
              mapped("sigmoid", doubles({1}), {{"bias", HUGE_VAL}});
            }),
            "here.bias: must be a finite number, got inf");
}

}  // namespace kelvin::sigmoid_test
