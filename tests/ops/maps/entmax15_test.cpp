#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/oracle.h"
#include "tests/support/simplex.h"
#include "tests/support/tensors.h"

namespace kelvin::entmax15_test {

// (x / 2 - t)^2 + t^2 = 1, solved for the threshold t.
TEST(Entmax15, OfTwoLogitsSolvesAQuadraticEquation) {
  for (const double x : {-1.7, -0.5, 0.0, 0.3, 1.0, 1.9}) {
    const double threshold = (x / 2 - std::sqrt(2 - x * x / 4)) / 2;
    const double share = (x / 2 - threshold) * (x / 2 - threshold);
    expect_close(mapped("entmax15", doubles({x, 0})), doubles({share, 1 - share}), 1e-15);
  }
}

TEST(Entmax15, GivesNothingToLogitsThatAreSmallerByTwo) {
  expect_close(mapped("entmax15", doubles({2, 0, -9, 0})), doubles({1, 0, 0, 0}), 1e-15);
  const auto shares = mapped("entmax15", doubles({2, 0.01, -9}));
  EXPECT_GT(shares[1].item<double>(), 0);
  EXPECT_EQ(shares[2].item<double>(), 0);
}

// The threshold by bisection: no sort, no support.
TEST(Entmax15, AgreesWithNumPy) {
  const auto logits =
      noise({200, 30}, 2) * torch::logspace(-2, 2, 200, 10, torch::kFloat64).view({-1, 1});
  const auto expected = oracle(R"(
z = x["logits"] / 2
low, high = z.max(1, keepdims=True) - 1, z.max(1, keepdims=True)
for _ in range(200):
    middle = (low + high) / 2
    is_low = (np.maximum(z - middle, 0) ** 2).sum(1, keepdims=True) > 1
    low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
out["shares"] = np.maximum(z - low, 0) ** 2
)",
                               {{"logits", logits}});
  const auto shares = mapped("entmax15", logits);
  expect_close(shares, expected.at("shares"), 1e-12);
  expect_close(mapped("entmax15", logits.to(torch::kFloat32)), expected.at("shares"), 3e-5);
  const auto sizes = (shares > 0).sum(-1);
  EXPECT_EQ(sizes.min().item<int64_t>(), 1);
  EXPECT_EQ(sizes.max().item<int64_t>(), 30);
}

}  // namespace kelvin::entmax15_test
