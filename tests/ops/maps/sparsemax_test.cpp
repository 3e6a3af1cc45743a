#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>

#include "tests/support/oracle.h"
#include "tests/support/simplex.h"
#include "tests/support/tensors.h"

namespace kelvin::sparsemax_test {

TEST(Sparsemax, OfTwoLogitsIsTheirDifferenceClipped) {
  for (const double difference : {-3.0, -1.0, -0.4, 0.0, 0.25, 1.0, 2.0}) {
    const double share = std::clamp((difference + 1) / 2, 0.0, 1.0);
    expect_close(mapped("sparsemax", doubles({difference, 0})), doubles({share, 1 - share}), 1e-15);
  }
}

TEST(Sparsemax, LeavesAPointOfTheSimplexWhereItIs) {
  const auto point = torch::softmax(noise({8, 6}, 1), -1);
  expect_close(mapped("sparsemax", point), point, 1e-15);
  const auto corner = doubles({0, 0, 1, 0});
  expect_close(mapped("sparsemax", corner), corner, 0);
}

TEST(Sparsemax, GivesNothingToLogitsThatAreSmallerByOne) {
  expect_close(mapped("sparsemax", doubles({0.5, 1.5, 0.5, -9})), doubles({0, 1, 0, 0}), 0);
}

// The threshold by bisection: no sort, no support.
TEST(Sparsemax, AgreesWithNumPy) {
  const auto logits =
      noise({200, 30}, 2) * torch::logspace(-2, 2, 200, 10, torch::kFloat64).view({-1, 1});
  const auto expected = oracle(R"(
z = x["logits"]
low, high = z.max(1, keepdims=True) - 1, z.max(1, keepdims=True)
for _ in range(200):
    middle = (low + high) / 2
    is_low = np.maximum(z - middle, 0).sum(1, keepdims=True) > 1
    low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
out["shares"] = np.maximum(z - low, 0)
)",
                               {{"logits", logits}});
  const auto shares = mapped("sparsemax", logits);
  expect_close(shares, expected.at("shares"), 1e-12);
  expect_close(mapped("sparsemax", logits.to(torch::kFloat32)), expected.at("shares"), 3e-5);
  const auto sizes = (shares > 0).sum(-1);
  EXPECT_EQ(sizes.min().item<int64_t>(), 1);
  EXPECT_EQ(sizes.max().item<int64_t>(), 30);
}

}  // namespace kelvin::sparsemax_test
