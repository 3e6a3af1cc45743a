#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/feature_detectors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::nci_test {

Record classified(const torch::Tensor& features) {
  return features_record(features, noise({4, features.size(1)}, 500), noise({4}, 501));
}

torch::Tensor nci_scores(const torch::Tensor& train, const torch::Tensor& test,
                         const Values& values = {}) {
  return scores_of("nci", classified(train), classified(test), values);
}

TEST(Nci, IsTheProximityToTheWeightsOfThePredictedClassPlusTheNorm) {
  const auto shown = [](const torch::Tensor& features) {
    return features_record(features, doubles({5, 0, 0, 2}).view({2, 2}),
                           torch::zeros({2}, torch::kFloat64));
  };
  const auto train = shown(doubles({0, 1, 2, 1}).view({2, 2}));  // around (1, 1)
  const auto test = shown(doubles({4, 5, -2, 1}).view({2, 2}));  // of the first, of the second
  expect_close(scores_of("nci", train, test, {{"alpha", 0.5}}), doubles({3 + 4.5, 0 + 1.5}), 1e-14);
  expect_close(scores_of("nci", train, test, {{"alpha", 0}}), doubles({3, 0}), 1e-14);
}

TEST(Nci, IsThatOfNumPy) {
  const auto train = clustered(60, 8, 4, 0);
  const auto test = torch::cat({clustered(10, 8, 4, 1), noise({10, 8}, 2)});
  const auto shown = classified(train);
  const auto expected =
      oracle(R"(
w, b = x["weight"], x["bias"]
for alpha in (0.0001, 0.01):
    scores = []
    for h in x["test"]:
        z = h - x["train"].mean(0)
        own = w[np.argmax(w @ h + b)]
        cosine = own @ z / np.linalg.norm(own) / np.linalg.norm(z)
        scores.append(cosine * np.linalg.norm(own) + alpha * np.abs(h).sum())
    out[str(alpha)] = np.array(scores)
)",
             {{"train", train}, {"test", test}, {"weight", shown.weight}, {"bias", shown.bias}});
  expect_close(nci_scores(train, test), expected.at("0.0001"), 1e-12);
  expect_close(nci_scores(train, test, {{"alpha", 0.01}}), expected.at("0.01"), 1e-12);
}

TEST(Nci, WithoutTheNormIgnoresRotationsAndTheScaleOfFeatures) {
  const auto train = clustered(60, 6, 4, 3);
  const auto test = noise({20, 6}, 4);
  const auto plain = classified(train);
  const auto turned = rotation(6, 5);
  const auto shown = [&](const torch::Tensor& features) {
    return features_record(5 * features.matmul(turned), plain.weight.matmul(turned),
                           5 * plain.bias);
  };
  expect_close(scores_of("nci", shown(train), shown(test), {{"alpha", 0}}),
               nci_scores(train, test, {{"alpha", 0}}), 1e-12);
}

TEST(Nci, OfTheMeanIsItsNorm) {
  const auto train = clustered(60, 6, 4, 3);
  const auto mean = train.mean(0, true);
  expect_close(nci_scores(train, mean, {{"alpha", 2}}), 2 * mean.abs().sum(1), 1e-12);
}

TEST(Nci, OfTheZeroVectorIsItsProximity) {
  const auto train = clustered(60, 6, 4, 3);
  const auto shown = classified(train);
  const auto own = shown.weight[shown.bias.argmax().item<int64_t>()];
  const auto mean = train.mean(0);
  expect_close(nci_scores(train, torch::zeros({1, 6}, torch::kFloat64)),
               (-own.dot(mean) / mean.norm()).unsqueeze(0), 1e-12);
}

TEST(Nci, OfConstantFeaturesIsTheirNorm) {
  const auto train = torch::full({70, 5}, 0.1, torch::kFloat64);
  expect_close(nci_scores(train, train, {{"alpha", 1}}), torch::full({70}, 0.5, torch::kFloat64),
               1e-14);
}

TEST(Nci, WorksOfOneClass) {
  const auto shown = [](const torch::Tensor& features) {
    return features_record(features, doubles({0, 2}).view({1, 2}), doubles({1}));
  };
  const auto train = shown(doubles({1, 0, -1, 0}).view({2, 2}));
  expect_close(scores_of("nci", train, shown(doubles({3, 4}).view({1, 2})), {{"alpha", 0}}),
               doubles({2 * 0.8}), 1e-14);
}

TEST(Nci, GivesOodSamplesLowerScores) {
  const auto train = clustered(200, 12, 4, 0);
  const auto weight = train.slice(0, 0, 4) - train.mean(0);
  const auto shown = [&](const torch::Tensor& features) {
    return features_record(features, weight, -train.mean(0).matmul(weight.t()));
  };
  expect_lower(scores_of("nci", shown(train), shown(train.mean(0) + noise({50, 12}, 1))),
               scores_of("nci", shown(train), shown(clustered(50, 12, 4, 2))));
}

TEST(Nci, SaysWhatAlphaIs) {
  EXPECT_EQ(make_detector("nci")->definition()["alpha"], 1e-4);
  EXPECT_EQ(error_of([] {
              make_detector("nci", {{"alpha", -1}});
            }),
            "detector.nci.alpha: must be a finite number not below 0, got -1");
}

TEST(Nci, NeedsTheClassifier) {
  EXPECT_EQ(error_of([] {
              make_detector("nci")->fit(unclassified(noise({9, 3}, 0)));
            }),
            "nci: needs the classifier's weight, which the records do not have");
}

}  // namespace kelvin::nci_test
