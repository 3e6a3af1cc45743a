#include <gtest/gtest.h>
#include <torch/types.h>

#include <vector>

#include "kelvin/ops/adaptive_softmax.h"
#include "tests/support/errors.h"
#include "tests/support/simplex.h"
#include "tests/support/tensors.h"

namespace kelvin::adaptive_test {

TEST(AdaptiveMap, IsAdaptiveSoftmaxWithItsSettings) {
  const auto logits =
      noise({20, 400}, 1) * torch::logspace(-2, 1, 20, 10, torch::kFloat64).view({-1, 1});
  expect_close(mapped("adaptive", logits), adaptive_softmax(logits), 0);
  expect_close(mapped("adaptive", logits,
                      {{"coefficients", {0, 0, -0.2, 2, 0.1}},
                       {"floor", 0.7},
                       {"threshold", 1.0},
                       {"past_the_peak", "hold"}}),
               adaptive_softmax(logits, {.coefficients = {0, 0, -0.2, 2, 0.1},
                                         .floor = 0.7,
                                         .threshold = 1,
                                         .past_the_peak = PastThePeak::hold}),
               0);
  expect_close(mapped("adaptive", logits, {{"past_the_peak", "grow"}}),
               adaptive_softmax(logits, {.past_the_peak = PastThePeak::grow}), 0);
}

TEST(AdaptiveMap, DetachesBetaIfToldTo) {
  const auto gradient = [](bool detach) {
    auto leaf = noise({3, 9}, 2).requires_grad_();
    mapped("adaptive", leaf, {{"detach_beta", detach}}).square().sum().backward();
    return leaf.grad();
  };
  EXPECT_FALSE(torch::allclose(gradient(true), gradient(false)));
}

TEST(AdaptiveMap, IsSharperThanSoftmax) {
  const auto logits = noise({50, 30}, 3);
  const auto sharp = std::get<0>(mapped("adaptive", logits).max(-1));
  EXPECT_GT((sharp - std::get<0>(torch::softmax(logits, -1).max(-1))).min().item<double>(), 0.01);
}

TEST(AdaptiveMap, RejectsSettingsThatMakeNoSense) {
  const auto refusal = [](const Values& values) {
    return error_of([&] { mapped("adaptive", doubles({1}), values); });
  };
  EXPECT_EQ(refusal({{"coefficients", {1.0, 2.0}}}),
            "here.coefficients: must be 5 numbers, of the highest power first, got 2");
  EXPECT_EQ(refusal({{"past_the_peak", "stay"}}),
            "here.past_the_peak: must be fall, hold or grow, got 'stay'");
  EXPECT_EQ(refusal({{"floor", 0.0}}),
            "adaptive: the floor of beta must be a finite number above 0, got 0");
}

}  // namespace kelvin::adaptive_test
