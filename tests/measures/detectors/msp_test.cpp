#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/detectors.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::msp_test {

torch::Tensor msp_scores(const torch::Tensor& logits, double temperature = 1) {
  return unfitted_scores("msp", logits_record(logits), {}, temperature);
}

TEST(MaximumProbability, IsTheLogarithmOfTheLargestProbability) {
  const auto logits = torch::stack({doubles({0, std::log(2), std::log(5)}), doubles({1, 1, 1})});
  expect_close(msp_scores(logits), doubles({std::log(5. / 8), std::log(1. / 3)}), 1e-14);
}

TEST(MaximumProbability, IsThatOfSciPy) {
  const auto logits = 4 * noise({50, 8}, 3);
  const auto expected = oracle(R"(
from scipy.special import softmax
out["scores"] = np.log(softmax(x["logits"] / 3, axis=1).max(axis=1))
)",
                               {{"logits", logits}});
  expect_close(msp_scores(logits, 3), expected.at("scores"), 1e-12);
}

TEST(MaximumProbability, DividesByTheTrainingTemperature) {
  const auto logits = doubles({0, 2 * std::log(3)}).unsqueeze(0);
  expect_close(msp_scores(logits, 2), doubles({std::log(0.75)}), 1e-14);
  expect_close(msp_scores(logits, 0.5), doubles({std::log(81. / 82)}), 1e-14);
}

TEST(MaximumProbability, IgnoresTheOrderOfClasses) {
  const auto logits = noise({20, 6}, 0);
  expect_close(msp_scores(logits.flip(1)), msp_scores(logits), 1e-12);
}

TEST(MaximumProbability, TellsConfidentSamplesApart) {
  // Each of these probabilities is 1 in double precision.
  const auto margins = doubles({40, 50, 100, 500});
  const auto scores = msp_scores(torch::stack({margins, torch::zeros_like(margins)}, 1));
  expect_close(scores / -(-margins).exp(), torch::ones({4}), 1e-12);
}

TEST(MaximumProbability, SurvivesHugeLogitsAtATinyTemperature) {
  const auto scores = msp_scores(torch::tensor({{1e6F, 0.F}, {1e6F, 1e6F}}), 1e-3);
  expect_close(scores, doubles({0, std::log(0.5)}), 1e-14);
}

TEST(MaximumProbability, OfASingleClassIsCertain) {
  expect_close(msp_scores(torch::tensor({{3.F}, {-2.F}})), doubles({0, 0}), 0);
}

TEST(MaximumProbability, RejectsATemperatureThatIsNotAboveZero) {
  EXPECT_EQ(error_of([] {
              msp_scores(torch::ones({1, 2}), 0);
            }),
            "msp: temperature must be a finite number above 0, got 0");
}

}  // namespace kelvin::msp_test
