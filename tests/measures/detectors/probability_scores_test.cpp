#include "kelvin/measures/detectors/probability_scores.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "tests/support/detectors.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::probability_scores_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(ClassOdds, CompareEachClassWithTheWinner) {
  const auto logits = doubles({std::log(2), std::log(8), std::log(4)}).unsqueeze(0);
  const auto odds = class_odds(logits, 1);
  expect_close(odds.logarithms.exp(), doubles({0.25, 1, 0.5}).unsqueeze(0), 1e-14);
  expect_close(odds.log_others.exp(), doubles({0.75}).unsqueeze(0), 1e-14);
  expect_close(log_probabilities(odds).exp(), doubles({2. / 14, 8. / 14, 4. / 14}).unsqueeze(0),
               1e-14);
}

TEST(ClassOdds, CountASecondWinnerAmongTheOthers) {
  const auto odds = class_odds(doubles({3, 3, 3}).unsqueeze(0), 1);
  expect_close(odds.log_others, doubles({std::log(2)}).unsqueeze(0), 1e-14);
}

TEST(ClassOdds, HaveNoOthersWhereThereIsOneClass) {
  const auto odds = class_odds(doubles({3}).unsqueeze(0), 1);
  EXPECT_EQ(odds.log_others.item<double>(), -kInfinity);
  expect_close(log_probabilities(odds), torch::zeros({1, 1}), 0);
  expect_close(entropy(odds), torch::zeros({1}), 0);
}

TEST(ClassOdds, AreNotANumberWhereALogitIsNone) {
  const auto spoilt =
      torch::tensor({{kNan, 0., 1.}, {0., 1., kNan}, {0., kInfinity, 1.}}, torch::kFloat64);
  EXPECT_TRUE(torch::isnan(log_largest_probability(spoilt, 1)).all().item<bool>());
  EXPECT_TRUE(torch::isnan(entropy(class_odds(spoilt, 1))).all().item<bool>());
  EXPECT_TRUE(torch::isnan(energy(spoilt, 1)).all().item<bool>());
  EXPECT_TRUE(std::isnan(
      log_largest_probability(torch::tensor({{kNan}}, torch::kFloat64), 1).item<double>()));
}

TEST(ClassOdds, LeaveOutAClassWhoseLogitIsMinusInfinity) {
  const auto logits = noise({5, 4}, 0);
  const auto more = torch::cat({logits, torch::full({5, 1}, -kInfinity, torch::kFloat64)}, 1);
  expect_close(log_largest_probability(more, 2), log_largest_probability(logits, 2), 1e-14);
  expect_close(entropy(class_odds(more, 2)), entropy(class_odds(logits, 2)), 1e-14);
  expect_close(energy(more, 2), energy(logits, 2), 1e-14);
}

TEST(ClassOdds, AreThereForNoSamples) {
  const auto none = torch::zeros({0, 3}, torch::kFloat64);
  EXPECT_EQ(log_largest_probability(none, 1).sizes(), torch::IntArrayRef({0}));
  EXPECT_EQ(entropy(class_odds(none, 1)).sizes(), torch::IntArrayRef({0}));
  EXPECT_EQ(energy(none, 1).sizes(), torch::IntArrayRef({0}));
}

TEST(ClassOdds, NeedAClass) {
  EXPECT_EQ(error_of([] {
              class_odds(torch::zeros({3, 0}, torch::kFloat64), 1);
            }),
            "class_odds: logits must be [samples, classes] with at least one class, got [3, 0]");
}

TEST(ProbabilityScores, AreThoseOfSciPy) {
  const auto logits = 5 * noise({40, 9}, 1);
  const auto expected = oracle(R"(
from scipy.special import log_softmax, logsumexp
from scipy.stats import entropy
for name, t in (("cold", .3), ("one", 1), ("hot", 100)):
    m = x["logits"]
    out[name + "/log"] = log_softmax(m / t, axis=1)
    out[name + "/entropy"] = entropy(np.exp(out[name + "/log"]), axis=1)
    out[name + "/energy"] = t * logsumexp(m / t, axis=1)
)",
                               {{"logits", logits}});
  for (const auto& [name, temperature] :
       std::map<std::string, double>{{"cold", 0.3}, {"one", 1}, {"hot", 100}}) {
    const auto odds = class_odds(logits, temperature);
    const auto& logs = expected.at(name + "/log");
    expect_close(log_probabilities(odds), logs, 1e-12);
    expect_close(log_largest_probability(logits, temperature), logs.amax(1), 1e-12);
    expect_close(entropy(odds), expected.at(name + "/entropy"), 1e-12);
    expect_ratio(energy(logits, temperature), expected.at(name + "/energy"), 1e-12);
  }
}

TEST(ProbabilityScores, KeepAllDigitsOfConfidentSamples) {
  const auto logits = torch::tensor(
      {{0., 40., -3.}, {60., 1., 2.}, {0., 20., 300.}, {-700., 0., -700.}}, torch::kFloat64);
  const auto expected = oracle(std::string(kDecimalProbabilities) + R"(
rows = [probabilities(row) for row in x["logits"]]
out["log"] = np.array([float(max(row).ln()) for row in rows])
out["entropy"] = np.array([float(-sum(p * p.ln() for p in row)) for row in rows])
)",
                               {{"logits", logits}});
  expect_ratio(log_largest_probability(logits, 1), expected.at("log"), 1e-12);
  expect_ratio(entropy(class_odds(logits, 1)), expected.at("entropy"), 1e-12);
}

TEST(ProbabilityScores, TakeLogitsThatOverflowOverTheTemperature) {
  const auto logits = torch::tensor({{1e200, 0.}, {1e200, 1e200}}, torch::kFloat64);
  expect_close(log_largest_probability(logits, 1e-200), doubles({0, -std::log(2)}), 1e-14);
  expect_close(entropy(class_odds(logits, 1e-200)), doubles({0, std::log(2)}), 1e-14);
  expect_close(energy(logits, 1e-200), doubles({1e200, 1e200}), 0);
}

TEST(RecomputedLogits, AreThoseOfTheClassifierForOtherFeatures) {
  const auto weight = torch::tensor({{1., 2.}, {0., -1.}, {3., 0.}}, torch::kFloat64);
  const auto record = features_record(noise({1, 2}, 0), weight, doubles({10, 20, 30}));
  expect_close(recomputed_logits(record, torch::tensor({{1., 4.}, {0., 0.}}, torch::kFloat64)),
               torch::tensor({{19., 16., 33.}, {10., 20., 30.}}, torch::kFloat64), 0);
}

}  // namespace kelvin::probability_scores_test
