#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/oracle.h"
#include "tests/support/simplex.h"
#include "tests/support/tensors.h"

namespace kelvin::stick_breaking_test {

// Sigmoids of 0 are halves.
TEST(StickBreaking, BreaksFromTheLastOn) {
  expect_close(mapped("stick_breaking", torch::zeros(4, torch::kFloat64)),
               doubles({1. / 16, 1. / 8, 1. / 4, 1. / 2}), 1e-15);
  expect_close(mapped("stick_breaking", doubles({0, std::log(3), 0})),
               doubles({1. / 16, 3. / 8, 1. / 2}), 1e-15);
}

TEST(StickBreaking, LeavesTheProductOfTheOtherSigmoids) {
  const auto logits = noise({6, 11}, 1);
  const auto left = (1 - torch::sigmoid(logits)).prod(-1);
  expect_close(mapped("stick_breaking", logits).sum(-1), 1 - left, 1e-15);
}

TEST(StickBreaking, LetsTheLastOfTheLargestTakeAll) {
  expect_close(mapped("stick_breaking", doubles({1e6, 1e6, -1e6, 1e6, -1e6})),
               doubles({0, 0, 0, 1, 0}), 0);
  expect_close(mapped("stick_breaking", doubles({-1e300, -1e300})), doubles({0, 0}), 0);
}

TEST(StickBreaking, AgreesWithALoop) {
  const auto logits = 3 * noise({40, 25}, 2);
  const auto expected = oracle(R"(
parts = 1 / (1 + np.exp(-x["logits"]))
shares = np.zeros_like(parts)
left = np.ones(len(parts))
for i in reversed(range(parts.shape[1])):
    shares[:, i] = left * parts[:, i]
    left = left * (1 - parts[:, i])
out["shares"] = shares
)",
                               {{"logits", logits}});
  expect_close(mapped("stick_breaking", logits), expected.at("shares"), 1e-14);
}

}  // namespace kelvin::stick_breaking_test
