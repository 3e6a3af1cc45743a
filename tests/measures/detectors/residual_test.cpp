#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/errors.h"
#include "tests/support/feature_detectors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::residual_test {

torch::Tensor weight_of(int64_t dims) { return noise({4, dims}, 500); }
torch::Tensor bias_of() { return noise({4}, 501); }

Record classified(const torch::Tensor& features) {
  return features_record(features, weight_of(features.size(1)), bias_of());
}

torch::Tensor residual_scores(const torch::Tensor& train, const torch::Tensor& test,
                              const Values& values = {}) {
  return scores_of("residual", classified(train), classified(test), values);
}

TEST(Residual, IsMinusTheLengthOutsideOfThePrincipalSpace) {
  // Without bias the origin is 0, and training features lie in the first two directions.
  const auto weight = torch::eye(3, torch::kFloat64);
  const auto shown = [&](const torch::Tensor& features) {
    return features_record(features, weight, torch::zeros({3}, torch::kFloat64));
  };
  const auto train = doubles({1, 0, 0, 0, 2, 0}).view({-1, 3});
  const auto test = doubles({5, 5, 0, 1, 2, -3}).view({-1, 3});
  expect_close(scores_of("residual", shown(train), shown(test), {{"dimensions", 2}}),
               doubles({0, -3}), 1e-14);
}

TEST(Residual, IsThatOfNumPy) {
  const auto train = clustered(80, 8, 4, 0);
  const auto test = torch::cat({clustered(10, 8, 4, 1), noise({10, 8}, 2)});
  const auto expected =
      oracle(R"(
from sklearn.covariance import EmpiricalCovariance
u = -np.linalg.pinv(x["weight"]) @ x["bias"]
covariance = EmpiricalCovariance(assume_centered=True).fit(x["train"] - u).covariance_
values, vectors = np.linalg.eigh(covariance)
for d in (3, 4):
    rest = vectors[:, np.argsort(-values)[d:]]
    out[str(d)] = -np.linalg.norm((x["test"] - u) @ rest, axis=1)
)",
             {{"train", train}, {"test", test}, {"weight", weight_of(8)}, {"bias", bias_of()}});
  expect_ratio(residual_scores(train, test), expected.at("4"), 1e-9);  // half of all
  expect_ratio(residual_scores(train, test, {{"dimensions", 3}}), expected.at("3"), 1e-9);
}

TEST(Residual, IgnoresRotationsAndGrowsWithTheScale) {
  const auto train = clustered(60, 6, 4, 3);
  const auto test = noise({20, 6}, 4);
  const auto turned = rotation(6, 5);
  const auto shown = [&](const torch::Tensor& features) {
    return features_record(features.matmul(turned), weight_of(6).matmul(turned), bias_of());
  };
  const auto scores = residual_scores(train, test);
  expect_close(scores_of("residual", shown(train), shown(test)), scores, 1e-10);
  const auto larger = [&](const torch::Tensor& features) {
    return features_record(4 * features, weight_of(6) / 4, bias_of());
  };
  expect_close(scores_of("residual", larger(train), larger(test)), 4 * scores, 1e-10);
}

TEST(Residual, OfTheZeroVectorIsThatOfTheOrigin) {
  const auto train = clustered(60, 6, 4, 3);
  const auto zero = residual_scores(train, torch::zeros({1, 6}, torch::kFloat64));
  const auto origin = -torch::linalg_pinv(weight_of(6)).matmul(bias_of());
  expect_close(residual_scores(train, 2 * origin.unsqueeze(0)), zero, 1e-12);
  expect_close(residual_scores(train, origin.unsqueeze(0)), doubles({0}), 1e-12);
}

TEST(Residual, OfTrainingFeaturesOfSmallRankIsZeroWithinTheirSpace) {
  // Without bias, so that the origin lies in it.
  const auto shown = [&](const torch::Tensor& features) {
    return features_record(features, weight_of(6), torch::zeros({4}, torch::kFloat64));
  };
  const auto plane = noise({2, 6}, 6);
  const auto train = shown(noise({40, 2}, 7).matmul(plane));
  expect_close(scores_of("residual", train, shown(noise({5, 2}, 8).matmul(plane))),
               torch::zeros({5}), 0);  // no rounding, which would rank samples
  const auto constant = shown(plane.slice(0, 0, 1).expand({30, 6}));
  expect_close(scores_of("residual", constant, constant), torch::zeros({30}), 0);
  Settings settings("detector.residual", {});
  const auto residual = detectors().find("residual").make({}, settings);
  residual->fit(train);
  EXPECT_TRUE(residual->definition().at("tells_nothing").get<bool>());
}

TEST(Residual, NeedsNoLabelsAndWorksOfOneClass) {
  auto train = classified(clustered(60, 6, 4, 3));
  const auto test = classified(noise({5, 6}, 4));
  const auto scores = scores_of("residual", train, test);
  train.labels = torch::zeros_like(train.labels);
  expect_close(scores_of("residual", train, test), scores, 0);
  train.labels = torch::Tensor();
  expect_close(scores_of("residual", train, test), scores, 0);
}

TEST(Residual, GivesOodSamplesLowerScores) {
  const auto train = clustered(200, 12, 4, 0);
  expect_lower(residual_scores(train, 4 * noise({50, 12}, 1)),
               residual_scores(train, clustered(50, 12, 4, 2)));
}

TEST(Residual, SaysHowManyDimensionsArePrincipal) {
  const auto residual = make_detector("residual");
  EXPECT_FALSE(residual->definition().contains("dimensions"));
  residual->fit(classified(clustered(60, 6, 4, 3)));
  EXPECT_EQ(residual->definition()["dimensions"], 3);
}

TEST(Residual, NeedsTheClassifier) {
  EXPECT_EQ(error_of([] {
              make_detector("residual")->fit(unclassified(noise({9, 3}, 0)));
            }),
            "residual: needs the classifier's weight, which the records do not have");
}

}  // namespace kelvin::residual_test
