#include "kelvin/ops/entmax.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/gradients.h"
#include "tests/support/oracle.h"
#include "tests/support/simplex.h"
#include "tests/support/tensors.h"

namespace kelvin::entmax_test {

torch::Tensor logits_of_many_scales() {
  return noise({200, 30}, 2) * torch::logspace(-2, 2, 200, 10, torch::kFloat64).view({-1, 1});
}

TEST(AlphaEntmax, IsSparsemaxAndEntmax15) {
  const auto logits = logits_of_many_scales();
  expect_close(alpha_entmax(logits, 2), mapped("sparsemax", logits), 1e-13);
  expect_close(alpha_entmax(logits, 1.5), mapped("entmax15", logits), 1e-12);
}

TEST(AlphaEntmax, ApproachesSoftmaxAtOne) {
  const auto logits = noise({20, 10}, 3);
  const auto softmax = torch::softmax(logits, -1);
  const auto distance = [&](double alpha) {
    return (alpha_entmax(logits, alpha) - softmax).abs().max().item<double>();
  };
  EXPECT_LT(distance(1.0001), 2e-4);
  EXPECT_NEAR(distance(1.001) / distance(1.0001), 10, 0.1);
}

// The threshold by bisection alone.
TEST(AlphaEntmax, AgreesWithNumPyAtAnyAlpha) {
  const auto logits = logits_of_many_scales();
  for (const double alpha : {1.05, 1.3, 1.5, 1.9, 2.5, 3.0, 4.0}) {
    SCOPED_TRACE(alpha);
    const auto expected =
        oracle(R"(
a = x["alpha"]
z = (a - 1) * (x["logits"] - x["logits"].max(1, keepdims=True))
low, high = -np.ones((len(z), 1)), np.zeros((len(z), 1))
for _ in range(200):
    middle = (low + high) / 2
    is_low = (np.maximum(z - middle, 0) ** (1 / (a - 1))).sum(1, keepdims=True) > 1
    low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
shares = np.maximum(z - low, 0) ** (1 / (a - 1))
out["shares"] = shares / shares.sum(1, keepdims=True)
)",
               {{"logits", logits}, {"alpha", torch::tensor(alpha, torch::kFloat64)}});
    // Roots magnify the rounding of small numbers.
    const double tolerance = std::max(1e-12, 4 * std::pow(1e-16, 1 / (alpha - 1)));
    expect_close(alpha_entmax(logits, alpha), expected.at("shares"), tolerance);
    expect_close(alpha_entmax(logits.to(torch::kFloat32), alpha),
                 alpha_entmax(logits.to(torch::kFloat32).to(torch::kFloat64), alpha), 1e-7);
  }
}

TEST(AlphaEntmax, HasTheGradientOfCentralDifferences) {
  for (const double alpha : {1.1, 1.5, 2.0, 2.5, 4.0}) {
    SCOPED_TRACE(alpha);
    expect_gradient([&](const torch::Tensor& logits) { return alpha_entmax(logits, alpha); },
                    0.4 * noise({3, 5}, 5));
  }
}

TEST(AlphaEntmax, GivesNothingToMaskedAndFarLogits) {
  constexpr double kMasked = -HUGE_VAL;
  for (const double alpha : {1.2, 2.0, 5.0}) {
    expect_close(alpha_entmax(doubles({1e300, kMasked, -1e300, 0}), alpha), doubles({1, 0, 0, 0}),
                 0);
    expect_close(alpha_entmax(doubles({3, kMasked, 3}), alpha), doubles({0.5, 0, 0.5}), 1e-15);
    expect_close(alpha_entmax(doubles({-4}), alpha), doubles({1}), 0);
  }
}

TEST(AlphaEntmax, HasFirstDerivativesOnly) {
  const auto leaf = noise({2, 3}, 6).requires_grad_();
  const auto sum = alpha_entmax(leaf, 1.3).square().sum();
  EXPECT_EQ(
      error_of([&] {
        torch::autograd::grad({sum}, {leaf}, {}, /*retain_graph=*/true, /*create_graph=*/true);
      }),
      "alpha_entmax: has first derivatives only; those of higher order need a ReferenceOpsScope");
}

TEST(AlphaEntmax, RejectsWhatItIsNotDefinedFor) {
  EXPECT_EQ(
      error_of([] { alpha_entmax(doubles({1}), 1); }),
      "alpha_entmax: alpha: must be a finite number above 1 (softmax is the limit at 1), got 1");
  EXPECT_EQ(error_of([] {
              alpha_entmax(labels_of({1, 2}), 2);
            }),
            "alpha_entmax: logits must be floating-point numbers, are long int");
}

}  // namespace kelvin::entmax_test
