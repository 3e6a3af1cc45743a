#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "tests/support/detectors.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::max_logit_test {

torch::Tensor max_logits(const torch::Tensor& logits, double temperature = 1) {
  return unfitted_scores("max_logit", logits_record(logits), {}, temperature);
}

TEST(MaximumLogit, IsTheLargestOfEachSample) {
  const auto logits = torch::tensor({{1., -2., 3.}, {-5., -4., -9.}, {7., 7., 7.}});
  expect_close(max_logits(logits), doubles({3, -4, 7}), 0);
}

TEST(MaximumLogit, IsThatOfNumPy) {
  const auto logits = 10 * noise({50, 12}, 0);
  const auto expected = oracle("out['scores'] = x['logits'].max(axis=1)", {{"logits", logits}});
  expect_close(max_logits(logits), expected.at("scores"), 0);
}

TEST(MaximumLogit, IgnoresTheTemperature) {
  const auto logits = noise({9, 4}, 1);
  expect_close(max_logits(logits, 100), max_logits(logits), 0);
}

TEST(MaximumLogit, OfASingleClassIsItsLogit) {
  expect_close(max_logits(torch::tensor({{3.}, {-2.}})), doubles({3, -2}), 0);
}

TEST(MaximumLogit, MayBeInfinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(max_logits(torch::tensor({{0., kInfinity}})).item<double>(), kInfinity);
}

TEST(MaximumLogit, RejectsALogitThatIsNotANumber) {
  EXPECT_EQ(error_of([] {
              max_logits(torch::tensor({{0., std::nan("")}}));
            }),
            "max_logit: the score of a sample is NaN");
}

}  // namespace kelvin::max_logit_test
