#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/simplex.h"
#include "tests/support/tensors.h"

namespace kelvin::log_n_test {

TEST(LogN, IsSoftmaxAtTheLengthOfTraining) {
  const auto logits = noise({5, 40}, 1);
  expect_close(mapped("log_n", logits, {{"train_length", 40}}), torch::softmax(logits, -1), 1e-15);
  expect_close(mapped("log_n", 3 * noise({2, 512}, 2)), torch::softmax(3 * noise({2, 512}, 2), -1),
               1e-15);
}

// Of n - 1 zeros and ln 2: 4^(ln n / ln 4) / ... at n = 16 the logit counts twice, so 2 becomes 4.
TEST(LogN, MultipliesByTheRatioOfLogarithms) {
  auto logits = torch::zeros(16, torch::kFloat64);
  logits[3] = std::log(2);
  const auto shares = mapped("log_n", logits, {{"train_length", 4}});
  EXPECT_NEAR(shares[3].item<double>(), 4.0 / 19, 1e-15);
  EXPECT_NEAR(shares[0].item<double>(), 1.0 / 19, 1e-15);
}

TEST(LogN, CountsTheLogitsOfEachRow) {
  auto logits = noise({2, 32}, 3);
  logits[1].narrow(0, 8, 24).fill_(-HUGE_VAL);
  const auto shares = mapped("log_n", logits, {{"train_length", 32}});
  expect_close(shares[0], torch::softmax(logits[0], -1), 1e-15);
  expect_close(shares[1], torch::softmax(0.6 * logits[1], -1), 1e-15);  // ln 8 / ln 32
}

TEST(LogN, RejectsALengthBelowTwo) {
  EXPECT_EQ(error_of([] {
              mapped("log_n", doubles({1}), {{"train_length", 1}});
            }),
            "here.train_length: must be at least 2, got 1");
}

}  // namespace kelvin::log_n_test
