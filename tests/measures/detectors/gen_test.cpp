#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/detectors.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::gen_test {

torch::Tensor gen_scores(const torch::Tensor& logits, const Values& values = {},
                         double temperature = 1) {
  return unfitted_scores("gen", logits_record(logits), values, temperature);
}

TEST(GeneralisedEntropy, SumsPowersOfProbabilities) {
  const auto logits = torch::stack({doubles({0, std::log(3)}), doubles({5, 5})});
  const auto of_a_quarter = -2 * std::pow(3. / 16, 0.1);
  const auto of_halves = -2 * std::pow(0.25, 0.1);
  expect_close(gen_scores(logits), doubles({of_a_quarter, of_halves}), 1e-14);
}

TEST(GeneralisedEntropy, LooksAtTheLargestProbabilitiesOnly) {
  const auto logits = doubles({std::log(1), std::log(6), std::log(3)}).unsqueeze(0);
  const double of_largest = 0.6 * 0.4;
  const double of_second = 0.3 * 0.7;
  const double of_third = 0.1 * 0.9;
  const auto summed = [&](int64_t top) {
    return gen_scores(logits, {{"top", top}, {"gamma", 1}}).item<double>();
  };
  EXPECT_NEAR(summed(1), -of_largest, 1e-14);
  EXPECT_NEAR(summed(2), -(of_largest + of_second), 1e-14);
  EXPECT_NEAR(summed(3), -(of_largest + of_second + of_third), 1e-14);
  EXPECT_NEAR(summed(4), -(of_largest + of_second + of_third), 1e-14);
}

TEST(GeneralisedEntropy, IsThatOfNumPy) {
  const auto logits = 4 * noise({40, 130}, 0);
  const auto expected = oracle(R"(
from scipy.special import softmax
def generalised(t, gamma, top):
    p = np.sort(softmax(x["logits"] / t, axis=1), axis=1)[:, ::-1][:, :top]
    return -np.sum((p * (1 - p)) ** gamma, axis=1)
out["published"] = generalised(1, .1, 100)
out["other"] = generalised(3, .5, 7)
)",
                               {{"logits", logits}});
  expect_ratio(gen_scores(logits), expected.at("published"), 1e-12);
  expect_ratio(gen_scores(logits, {{"gamma", 0.5}, {"top", 7}}, 3), expected.at("other"), 1e-12);
}

TEST(GeneralisedEntropy, KeepsAllDigitsOfConfidentSamples) {
  const auto logits =
      torch::tensor({{0., 40., -3.}, {60., 1., 2.}, {0., 20., 300.}, {-700., 0., -700.}});
  const auto expected = oracle(std::string(kDecimalProbabilities) + R"(
gamma = Decimal(.1)
out["scores"] = np.array([-float(sum((p * (1 - p)) ** gamma for p in probabilities(row)))
                          for row in x["logits"]])
)",
                               {{"logits", logits}});
  expect_ratio(gen_scores(logits), expected.at("scores"), 1e-12);
}

TEST(GeneralisedEntropy, RanksMarginsThatNoProbabilityCanShow) {
  const auto margins = doubles({700, 800, 2000, 5000});
  const auto scores = gen_scores(torch::stack({margins, torch::zeros_like(margins)}, 1));
  expect_ratio(scores, -2 * (-0.1 * margins).exp(), 1e-12);
}

TEST(GeneralisedEntropy, OfASingleClassIsZero) {
  expect_close(gen_scores(torch::tensor({{3.}, {-2.}})), doubles({0, 0}), 0);
}

TEST(GeneralisedEntropy, SaysItsOptions) {
  const auto definition = make_detector("gen", {}, 5)->definition();
  EXPECT_EQ(definition["gamma"], 0.1);
  EXPECT_EQ(definition["top"], 100);
  EXPECT_EQ(definition["temperature"], 5);
}

TEST(GeneralisedEntropy, RejectsOptionsOutOfRange) {
  EXPECT_EQ(error_of([] {
              make_detector("gen", {{"gamma", 0}});
            }),
            "detector.gen.gamma: must be a finite number above 0, got 0");
  EXPECT_EQ(error_of([] {
              make_detector("gen", {{"top", 0}});
            }),
            "detector.gen.top: must be at least 1, got 0");
  EXPECT_EQ(error_of([] { make_detector("gen", {}, 0); }),
            "gen: temperature must be a finite number above 0, got 0");
}

}  // namespace kelvin::gen_test
