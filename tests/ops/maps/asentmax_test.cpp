#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "kelvin/ops/entmax.h"
#include "tests/support/errors.h"
#include "tests/support/simplex.h"
#include "tests/support/tensors.h"

namespace kelvin::asentmax_test {

TEST(Asentmax, IsEntmaxOfScaledLogits) {
  const auto logits = noise({5, 40}, 1);
  const double factor = 0.5 + 0.3 * std::pow(std::log(40), 1.7);
  expect_close(
      mapped("asentmax", logits, {{"alpha", 1.3}, {"delta", 0.5}, {"beta", 0.3}, {"gamma", 1.7}}),
      alpha_entmax(factor * logits, 1.3), 1e-13);
  expect_close(mapped("asentmax", logits), alpha_entmax((1 + std::log(40)) * logits, 1.5), 1e-13);
}

TEST(Asentmax, CountsTheLogitsOfEachRow) {
  auto logits = noise({2, 32}, 2);
  logits[1].narrow(0, 8, 24).fill_(-HUGE_VAL);
  const auto shares = mapped("asentmax", logits);
  expect_close(shares[1], alpha_entmax((1 + std::log(8)) * logits[1], 1.5), 1e-13);
}

TEST(Asentmax, HasAFactorForASingleLogitAtAnyGamma) {
  for (const double gamma : {-2.0, 0.0, 3.0}) {
    expect_close(mapped("asentmax", doubles({3}), {{"gamma", gamma}}), doubles({1}), 0);
  }
}

TEST(Asentmax, RejectsFactorsThatAreNotAbove0) {
  const auto refusal = [](const Values& values) {
    return error_of([&] { mapped("asentmax", doubles({1}), values); });
  };
  EXPECT_EQ(refusal({{"delta", 0.0}, {"beta", 0.0}}),
            "here.delta, here.beta: must not be negative nor both 0, got 0 and 0");
  EXPECT_EQ(refusal({{"gamma", std::nan("")}}), "here.gamma: must be a finite number, got nan");
  EXPECT_EQ(refusal({{"alpha", 0.5}}),
            "here.alpha: must be a finite number above 1 (softmax is the limit at 1), got 0.5");
}

}  // namespace kelvin::asentmax_test
