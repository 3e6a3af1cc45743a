#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/simplex.h"
#include "tests/support/tensors.h"

namespace kelvin::ssmax_test {

// 4^(s z) with s = 1 / 2 is 2^z.
TEST(Ssmax, IsAPowerOfTheLength) {
  expect_close(mapped("ssmax", doubles({0, 1, 2, 3}), {{"s", 0.5}}), doubles({1, 2, 4, 8}) / 15,
               1e-15);
}

TEST(Ssmax, AgreesWithNumPy) {
  auto logits = noise({30, 50}, 1);
  logits.narrow(1, 5, 20).narrow(0, 0, 10).fill_(-HUGE_VAL);
  const auto expected = oracle(R"(
z = x["logits"]
n = np.isfinite(z).sum(1, keepdims=True).astype(float)
powers = n ** (0.43 * z)
out["shares"] = powers / powers.sum(1, keepdims=True)
)",
                               {{"logits", logits}});
  expect_close(mapped("ssmax", logits), expected.at("shares"), 1e-14);
}

// A logit that is larger by d keeps its share however many others there are, if s d is above 1.
TEST(Ssmax, DoesNotSpreadOverLongRows) {
  for (const int64_t length : {100, 10000}) {
    auto logits = torch::zeros(length, torch::kFloat64);
    logits[0] = 5;
    EXPECT_GT(mapped("ssmax", logits)[0].item<double>(), 0.99);
    logits[0] = 1;
    EXPECT_LT(mapped("ssmax", logits)[0].item<double>(), 0.1);
  }
}

TEST(Ssmax, RejectsAScaleThatIsNotAbove0) {
  EXPECT_EQ(error_of([] {
              mapped("ssmax", doubles({1}), {{"s", 0.0}});
            }),
            "here.s: must be a finite number above 0, got 0");
}

}  // namespace kelvin::ssmax_test
