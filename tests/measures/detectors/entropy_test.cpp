#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/detectors.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::entropy_test {

torch::Tensor entropy_scores(const torch::Tensor& logits, double temperature = 1) {
  return unfitted_scores("entropy", logits_record(logits), {}, temperature);
}

TEST(EntropyScore, OfEqualLogitsIsMinusTheLogarithmOfTheirNumber) {
  expect_close(entropy_scores(torch::full({2, 5}, -7.)), doubles({-std::log(5), -std::log(5)}),
               1e-14);
}

TEST(EntropyScore, IsMinusTheEntropyAtTheTrainingTemperature) {
  const auto logits = doubles({0, 2 * std::log(3)}).unsqueeze(0);
  const auto of_a_quarter = -(0.25 * std::log(4) + 0.75 * std::log(4. / 3));
  expect_close(entropy_scores(logits, 2), doubles({of_a_quarter}), 1e-14);
}

TEST(EntropyScore, IsThatOfSciPy) {
  const auto logits = 4 * noise({50, 8}, 0);
  const auto expected = oracle(R"(
from scipy.special import softmax
from scipy.stats import entropy
out["scores"] = -entropy(softmax(x["logits"] / 3, axis=1), axis=1)
)",
                               {{"logits", logits}});
  expect_close(entropy_scores(logits, 3), expected.at("scores"), 1e-12);
}

TEST(EntropyScore, KeepsAllDigitsOfConfidentSamples) {
  // Of two classes with margin m: (m + 1) exp(-m), and smaller terms.
  const auto margins = doubles({50, 100, 300, 700});
  const auto scores = entropy_scores(torch::stack({torch::zeros_like(margins), margins}, 1));
  expect_ratio(scores, -(margins + 1) * (-margins).exp(), 1e-12);
}

TEST(EntropyScore, OfASingleClassIsZero) {
  expect_close(entropy_scores(torch::tensor({{3.}, {-2.}})), doubles({0, 0}), 0);
}

TEST(EntropyScore, RejectsATemperatureThatIsNotAboveZero) {
  EXPECT_EQ(error_of([] {
              entropy_scores(torch::ones({1, 2}), 0);
            }),
            "entropy: temperature must be a finite number above 0, got 0");
}

}  // namespace kelvin::entropy_test
