#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/feature_detectors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::vim_test {

Record classified(const torch::Tensor& features) {
  return features_record(features, noise({4, features.size(1)}, 500), noise({4}, 501));
}

torch::Tensor vim_scores(const torch::Tensor& train, const torch::Tensor& test,
                         const Values& values = {}, double temperature = 1) {
  return scores_of("vim", classified(train), classified(test), values, temperature);
}

TEST(Vim, IsTheEnergyLessAScaledLengthOutsideOfThePrincipalSpace) {
  // Logits are the features; the first direction is the principal one.  On training samples the
  // largest logits sum to 20, the lengths outside to 2.
  const auto shown = [](const torch::Tensor& features) {
    return features_record(features, torch::eye(2, torch::kFloat64),
                           torch::zeros({2}, torch::kFloat64));
  };
  const auto vim = make_detector("vim", {{"dimensions", 1}});
  vim->fit(shown(doubles({10, 1, 10, -1}).view({-1, 2})));
  EXPECT_NEAR(vim->definition()["alpha"].get<double>(), 10, 1e-12);
  EXPECT_EQ(vim->definition()["dimensions"], 1);
  expect_close(vim->score(shown(doubles({1, 3, 0, 0}).view({-1, 2}))),
               doubles({std::log(std::exp(1) + std::exp(3)) - 30, std::log(2)}), 1e-12);
}

TEST(Vim, IsThatOfNumPyAtEveryTemperature) {
  const auto train = clustered(80, 8, 4, 0);
  const auto test = torch::cat({clustered(10, 8, 4, 1), noise({10, 8}, 2)});
  const auto shown = classified(train);
  const auto expected =
      oracle(R"(
from scipy.special import logsumexp
u = -np.linalg.pinv(x["weight"]) @ x["bias"]
values, vectors = np.linalg.eigh((x["train"] - u).T @ (x["train"] - u))
logits = lambda h: h @ x["weight"].T + x["bias"]
for d in (3, 4):
    rest = vectors[:, np.argsort(-values)[d:]]
    norms = lambda h: np.linalg.norm((h - u) @ rest, axis=1)
    alpha = logits(x["train"]).max(1).mean() / norms(x["train"]).mean()
    for t in (1, 7):
        out[f"{d}/{t}"] = t * logsumexp(logits(x["test"]) / t, axis=1) - alpha * norms(x["test"])
)",
             {{"train", train}, {"test", test}, {"weight", shown.weight}, {"bias", shown.bias}});
  expect_close(vim_scores(train, test), expected.at("4/1"), 1e-9);
  expect_close(vim_scores(train, test, {{"dimensions", 3}}), expected.at("3/1"), 1e-9);
  expect_close(vim_scores(train, test, {}, 7), expected.at("4/7"), 1e-9);
  EXPECT_EQ(make_detector("vim", {}, 7)->definition()["temperature"], 7);
}

TEST(Vim, IgnoresRotationsAndScalesOfFeatures) {
  const auto train = clustered(60, 6, 4, 3);
  const auto test = noise({20, 6}, 4);
  const auto plain = classified(train);
  const auto turned = rotation(6, 5);
  const auto shown = [&](const torch::Tensor& features) {
    return features_record(5 * features.matmul(turned), plain.weight.matmul(turned) / 5,
                           plain.bias);
  };
  expect_close(scores_of("vim", shown(train), shown(test)), vim_scores(train, test), 1e-9);
}

TEST(Vim, OfTheOriginIsItsEnergy) {
  // There all logits are 0, if there are no more classes than features.
  const auto train = clustered(60, 6, 4, 3);
  const auto shown = classified(train);
  const auto origin = -torch::linalg_pinv(shown.weight).matmul(shown.bias);
  expect_close(vim_scores(train, origin.unsqueeze(0)), doubles({std::log(4)}), 1e-10);
}

TEST(Vim, GivesTheZeroVectorAScore) {
  const auto train = clustered(60, 6, 4, 3);
  auto shown = classified(train);
  shown.bias = torch::zeros_like(shown.bias);
  shown.logits = train.matmul(shown.weight.t());
  const auto zero =
      features_record(torch::zeros({1, 6}, torch::kFloat64), shown.weight, shown.bias);
  expect_close(scores_of("vim", shown, zero), doubles({std::log(4)}), 1e-12);
}

TEST(Vim, WorksOfOneClass) {
  const auto shown = [](const torch::Tensor& features) {
    return features_record(features, doubles({1, 0}).view({-1, 2}), doubles({0}));
  };
  const auto train = shown(doubles({3, 1, 3, -1}).view({-1, 2}));
  expect_close(scores_of("vim", train, shown(doubles({2, 2}).view({-1, 2}))), doubles({2 - 3 * 2}),
               1e-12);
}

TEST(Vim, GivesOodSamplesLowerScores) {
  const auto train = clustered(200, 12, 4, 0);
  expect_lower(vim_scores(train, 4 * noise({50, 12}, 1)),
               vim_scores(train, clustered(50, 12, 4, 2)));
}

TEST(Vim, RejectsTrainingFeaturesThatLieInThePrincipalSpace) {
  const auto plane = noise({2, 6}, 6);
  const auto message =
      "vim: training features must reach beyond their principal dimensions, all of them lie in 3; "
      "fewer dimensions may do";
  auto train = classified(noise({40, 2}, 7).matmul(plane));
  EXPECT_EQ(error_of([&] { make_detector("vim")->fit(train); }), message);
  train = classified(torch::full({30, 6}, 0.1, torch::kFloat64));
  EXPECT_EQ(error_of([&] { make_detector("vim")->fit(train); }), message);
  train = classified(torch::zeros({30, 6}, torch::kFloat64));
  train.bias = torch::zeros({4}, torch::kFloat64);
  EXPECT_EQ(error_of([&] { make_detector("vim")->fit(train); }), message);
}

TEST(Vim, RejectsATemperatureThatIsNotAboveZero) {
  EXPECT_EQ(error_of([] { make_detector("vim", {}, 0); }),
            "vim: temperature must be a finite number above 0, got 0");
}

TEST(Vim, NeedsTheClassifier) {
  EXPECT_EQ(error_of([] {
              make_detector("vim")->fit(unclassified(noise({9, 3}, 0)));
            }),
            "vim: needs the classifier's weight, which the records do not have");
}

}  // namespace kelvin::vim_test
