#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/detectors.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::kl_matching_test {

torch::Tensor kl_scores(const torch::Tensor& train, const torch::Tensor& test,
                        double temperature = 1) {
  return fitted_scores(*make_detector("kl_matching", {}, temperature), logits_record(train),
                       logits_record(test));
}

TEST(KlMatching, ComparesWithTheMeanProbabilitiesOfAPredictedClass) {
  // Means (0.7, 0.3), of 0.6 and 0.8, and (0.1, 0.9).
  const auto train = torch::tensor({{0.6, 0.4}, {0.1, 0.9}, {0.8, 0.2}}, torch::kFloat64).log();
  const auto test = torch::tensor({{0.7, 0.3}, {0.5, 0.5}, {0.2, 0.8}}, torch::kFloat64).log();
  const double of_halves = 0.5 * std::log(0.5 / 0.7) + 0.5 * std::log(0.5 / 0.3);
  const double of_a_fifth = 0.2 * std::log(0.2 / 0.1) + 0.8 * std::log(0.8 / 0.9);
  expect_close(kl_scores(train, test), doubles({0, -of_halves, -of_a_fifth}), 1e-14);
}

TEST(KlMatching, LeavesOutAClassThatIsNeverPredicted) {
  const auto train = torch::tensor({{0.6, 0.3, 0.1}, {0.8, 0.1, 0.1}}, torch::kFloat64).log();
  const auto test = torch::tensor({{0.1, 0.8, 0.1}}, torch::kFloat64).log();
  const auto detector = make_detector("kl_matching");
  const double divergence =
      0.1 * std::log(0.1 / 0.7) + 0.8 * std::log(0.8 / 0.2) + 0.1 * std::log(0.1 / 0.1);
  expect_close(fitted_scores(*detector, logits_record(train), logits_record(test)),
               doubles({-divergence}), 1e-14);
  EXPECT_EQ(detector->definition()["predicted_classes"], 1);
}

TEST(KlMatching, IsThatOfSciPy) {
  const auto train = 3 * noise({60, 9}, 0);
  const auto test = 3 * noise({30, 9}, 1);
  const auto expected = oracle(R"(
from scipy.special import softmax
from scipy.stats import entropy
train, test = softmax(x["train"] / 2, axis=1), softmax(x["test"] / 2, axis=1)
predicted = train.argmax(axis=1)
means = [train[predicted == k].mean(axis=0) for k in np.unique(predicted)]
out["scores"] = -np.min([[entropy(p, d) for d in means] for p in test], axis=1)
)",
                               {{"train", train}, {"test", test}});
  expect_close(kl_scores(train, test, 2), expected.at("scores"), 1e-12);
}

TEST(KlMatching, KeepsTheDigitsOfConfidentSamples) {
  const auto train = torch::tensor({{0., 100., 3.}, {1., 120., 0.}, {90., 0., 0.}});
  const auto test = torch::tensor({{0., 50., 1.}, {0., 60., 1.}, {0., 80., 1.}, {95., 0., 1.}});
  const auto expected = oracle(std::string(kDecimalProbabilities) + R"(
train = [probabilities(row) for row in x["train"]]
means = [[(a + b) / 2 for a, b in zip(train[0], train[1])], train[2]]
def divergence(p, d):
    return sum(a * (a / b).ln() for a, b in zip(p, d))
out["scores"] = np.array([-float(min(divergence(probabilities(row), d) for d in means))
                          for row in x["test"]])
)",
                               {{"train", train}, {"test", test}});
  const auto scores = kl_scores(train, test);
  expect_ratio(scores, expected.at("scores"), 1e-9);
  EXPECT_TRUE((scores.diff() > 0).all().item<bool>());
}

TEST(KlMatching, IsFiniteForClassesThatTrainingRulesOut) {
  // In training the other class has a probability of exp(-2000), which is 0 in double precision.
  const auto train = torch::tensor({{2000., 0.}}, torch::kFloat64);
  const auto test = torch::tensor({{0., 0.}}, torch::kFloat64);
  expect_close(kl_scores(train, test), doubles({-(1000 - std::log(2))}), 1e-9);
}

TEST(KlMatching, IsNeverAboveZero) {
  const auto train = 10 * noise({1, 50}, 2);
  EXPECT_LE(kl_scores(train, train).item<double>(), 0);
  expect_close(kl_scores(train, train), doubles({0}), 1e-13);
}

TEST(KlMatching, OfASingleClassIsZero) {
  expect_close(kl_scores(torch::ones({2, 1}), torch::tensor({{3.}, {-2.}})), doubles({0, 0}), 0);
}

TEST(KlMatching, RejectsAnotherNumberOfClasses) {
  EXPECT_EQ(error_of([] {
              kl_scores(noise({5, 3}, 0), noise({5, 4}, 0));
            }),
            "kl_matching: logits must have 3 classes as in training, got 4");
}

TEST(KlMatching, RejectsLogitsWithoutClasses) {
  auto record = logits_record(torch::ones({5, 0}));
  record.labels = torch::Tensor();
  EXPECT_EQ(error_of([&] { make_detector("kl_matching")->fit(record); }),
            "kl_matching: needs at least one class, got none");
}

TEST(KlMatching, RejectsATemperatureThatIsNotAboveZero) {
  EXPECT_EQ(error_of([] { make_detector("kl_matching", {}, 0); }),
            "kl_matching: temperature must be a finite number above 0, got 0");
}

}  // namespace kelvin::kl_matching_test
