#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/feature_detectors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::neco_test {

torch::Tensor neco_scores(const torch::Tensor& train, const torch::Tensor& test,
                          const Values& values = {}) {
  return scores_of("neco", unclassified(train), unclassified(test), values);
}

// Correlated features of different size and offset.
torch::Tensor correlated(int64_t samples, uint64_t seed) {
  return noise({samples, 7}, seed).matmul(noise({7, 7}, 100)) + 5 * noise({7}, 101);
}

TEST(Neco, IsTheShareOfAFeatureAlongThePrincipalDirection) {
  // Two features that always agree: the direction is (1, 1).
  const auto train = doubles({-1.0, -1.0, 1.0, 1.0}).view({-1, 2});
  const auto test = doubles({3.0, 3.0, 2.0, -2.0, 5.0, 0.0}).view({-1, 2});
  expect_close(neco_scores(train, test, {{"dimensions", 1}}), doubles({1, 0, std::sqrt(0.5)}),
               1e-12);
}

TEST(Neco, CanLeaveFeaturesAsTheyAre) {
  // Around (2, 1), in the first direction only.
  const auto train = doubles({1.0, 1.0, 3.0, 1.0}).view({-1, 2});
  const auto test = doubles({6.0, 8.0, 2.0, 5.0}).view({-1, 2});
  expect_close(neco_scores(train, test, {{"scaler", false}}), doubles({4. / 10, 0}), 1e-12);
}

TEST(Neco, IsThatOfScikitLearnWithAllOptions) {
  const auto train = correlated(90, 0);
  const auto test = torch::cat({correlated(20, 1), 3 * noise({20, 7}, 2)});
  auto constant = train.clone();
  constant.select(1, 2).fill_(0.1);
  constant.select(1, 4).zero_();
  const auto logits = noise({40, 3}, 3);
  const auto expected =
      oracle(R"(
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
norm = lambda m: np.linalg.norm(m, axis=1)
for name in ("train", "constant"):
    scaler = StandardScaler().fit(x[name])
    scaled = scaler.transform(x["test"])
    pca = PCA().fit(scaler.transform(x[name]))
    coordinates = pca.transform(scaled)
    for d in (1, 3, 7):
        out[f"{name}{d}"] = norm(coordinates[:, :d]) / norm(scaled)
out["raw_denominator"] = norm(pca.transform(scaled)[:, :3]) / norm(x["test"])
plain = PCA().fit(x["train"])
out["no_scaler"] = norm(plain.transform(x["test"])[:, :3]) / norm(x["test"])
out["max_logit"] = out["no_scaler"] * x["logits"].max(1)
shares = np.cumsum(plain.explained_variance_ratio_)
out["needed"] = np.array([np.searchsorted(shares, s) + 1 for s in (0.5, 0.9, 0.999)])
)",
             {{"train", train}, {"constant", constant}, {"test", test}, {"logits", logits}});
  expect_close(neco_scores(train, test, {{"dimensions", 1}}), expected.at("train1"), 1e-9);
  expect_close(neco_scores(train, test), expected.at("train3"), 1e-9);  // as many as classes
  expect_close(neco_scores(train, test, {{"dimensions", 7}}), expected.at("train7"), 1e-9);
  expect_close(neco_scores(constant, test), expected.at("constant3"), 1e-9);
  expect_close(neco_scores(constant, test, {{"raw_denominator", true}}),
               expected.at("raw_denominator"), 1e-9);
  expect_close(neco_scores(train, test, {{"scaler", false}}), expected.at("no_scaler"), 1e-9);
  auto with_logits = unclassified(test);
  with_logits.logits = logits;
  expect_close(
      scores_of("neco", unclassified(train), with_logits, {{"scaler", false}, {"max_logit", true}}),
      expected.at("max_logit"), 1e-9);
  int64_t i = 0;
  for (const double share : {0.5, 0.9, 0.999}) {
    const auto neco = make_detector("neco", {{"scaler", false}, {"explained_variance", share}});
    neco->fit(unclassified(train));
    EXPECT_EQ(neco->definition()["dimensions"], expected.at("needed")[i++].item<int64_t>());
    EXPECT_EQ(neco->definition()["explained_variance"], share);
  }
}

TEST(Neco, IgnoresTheScaleAndOffsetOfEachFeature) {
  const auto train = correlated(40, 5);
  const auto test = correlated(10, 6);
  const auto scale = torch::logspace(-2, 2, 7, 10, torch::kFloat64);
  const auto offset = noise({7}, 7);
  expect_close(neco_scores(train * scale + offset, test * scale + offset), neco_scores(train, test),
               1e-9);
}

TEST(Neco, WithoutScalerIgnoresRotations) {
  const auto train = correlated(40, 5);
  const auto test = correlated(10, 6);
  const auto turned = rotation(7, 8);
  expect_close(neco_scores(train.matmul(turned), test.matmul(turned), {{"scaler", false}}),
               neco_scores(train, test, {{"scaler", false}}), 1e-9);
}

TEST(Neco, RanksNothingWhenAllDimensionsAreKept) {
  const auto neco = make_detector("neco");
  neco->fit(unclassified(correlated(40, 8), /*classes=*/100));
  EXPECT_EQ(neco->definition()["dimensions"], 7);
  EXPECT_EQ(neco->definition()["rank"], 7);
  EXPECT_EQ(neco->definition()["max_logit"], false);
  EXPECT_EQ(neco->definition()["tells_nothing"], true);
  expect_close(neco->score(unclassified(correlated(5, 9))), torch::ones({5}), 0);
}

TEST(Neco, ExplainsAllVarianceWithAsManyDimensionsAsTheRank) {
  const auto neco = make_detector("neco", {{"explained_variance", 1}});
  neco->fit(unclassified(noise({50, 4}, 10).matmul(noise({4, 7}, 11))));
  EXPECT_EQ(neco->definition()["dimensions"], 4);
  EXPECT_EQ(neco->definition()["tells_nothing"], false);
}

TEST(Neco, KeepsNoMoreDimensionsThanTheRankOfTrainingFeatures) {
  // Beyond the rank, principal directions are arbitrary.
  const auto plane = noise({2, 7}, 11);
  const auto train = noise({50, 2}, 10).matmul(plane);
  const auto neco = make_detector("neco", {{"scaler", false}, {"dimensions", 5}});
  neco->fit(unclassified(train));
  EXPECT_EQ(neco->definition()["rank"], 2);
  EXPECT_EQ(neco->definition()["dimensions"], 2);
  const auto across = noise({1, 7}, 12);
  const auto basis = std::get<0>(torch::linalg_qr(plane.t()));
  const auto share = (across - train.mean(0)).matmul(basis).norm() / across.norm();
  expect_close(neco->score(unclassified(across)), share.unsqueeze(0), 1e-9);
}

TEST(Neco, OfConstantFeaturesTellsNothing) {
  for (const bool scaler : {true, false}) {
    const auto neco = make_detector("neco", {{"scaler", scaler}});
    neco->fit(unclassified(torch::full({77, 4}, 0.1, torch::kFloat64)));
    EXPECT_EQ(neco->definition()["rank"], 0);
    EXPECT_EQ(neco->definition()["tells_nothing"], true);
    expect_close(neco->score(unclassified(noise({3, 4}, 0))), torch::zeros({3}), 0);
  }
}

TEST(Neco, GivesWhatHasNoDirectionTheLowestScore) {
  const auto train = doubles({-1.0, 1.0, 3.0, 2.0}).view({-1, 2});
  expect_close(neco_scores(train, train.mean(0, true)), doubles({0}), 0);
  expect_close(neco_scores(train, torch::zeros({1, 2}), {{"scaler", false}}), doubles({0}), 0);
  expect_close(neco_scores(train, torch::zeros({1, 2}), {{"raw_denominator", true}}), doubles({0}),
               0);
}

TEST(Neco, GivesOodSamplesLowerScores) {
  const auto train = clustered(200, 12, 4, 0);
  const auto neco = make_detector("neco");
  neco->fit(unclassified(train, 4));
  expect_lower(neco->score(unclassified(train.mean(0) + noise({50, 12}, 1), 4)),
               neco->score(unclassified(clustered(50, 12, 4, 2), 4)));
}

TEST(Neco, SaysWhatItComputes) {
  const auto definition = make_detector("neco")->definition();
  EXPECT_EQ(definition["score"], "||P (h - mean) / deviation|| / ||(h - mean) / deviation||");
  EXPECT_FALSE(definition.contains("dimensions"));
  EXPECT_EQ(make_detector("neco", {{"scaler", false}, {"max_logit", true}})->definition()["score"],
            "||P (h - mean)|| / ||h|| * max M");
  EXPECT_EQ(make_detector("neco", {{"raw_denominator", true}})->definition()["score"],
            "||P (h - mean) / deviation|| / ||h||");
}

TEST(Neco, RejectsNumbersThatAreNone) {
  auto test = noise({2, 3}, 1);
  test[1][1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(error_of([&] {
              neco_scores(noise({9, 3}, 0), test);
            }),
            "neco: the score of a sample is NaN");
}

TEST(Neco, RejectsASingleTrainingSample) {
  EXPECT_EQ(error_of([] {
              make_detector("neco")->fit(unclassified(noise({1, 3}, 0)));
            }),
            "neco: needs at least 2 training samples, got 1");
}

TEST(Neco, RejectsOptionsThatMeanNothing) {
  EXPECT_EQ(error_of([] {
              make_detector("neco", {{"dimensions", -1}});
            }),
            "detector.neco.dimensions: must not be below 0, got -1");
  EXPECT_EQ(error_of([] {
              make_detector("neco", {{"explained_variance", 1.5}});
            }),
            "detector.neco.explained_variance: must be in (0, 1], or 0 for none, got 1.5");
  EXPECT_EQ(error_of([] {
              make_detector("neco", {{"explained_variance", 0.9}, {"dimensions", 3}});
            }),
            "detector.neco.explained_variance: must be 0 if dimensions are given, got both");
}

TEST(Neco, IsTimesTheLargestLogitForAVisionTransformerUnlessToldOtherwise) {
  const auto is_times_max_logit = [](const std::string& model, Values values) {
    Settings settings("detector.neco", std::move(values));
    const auto neco = detectors().find("neco").make({.model = model}, settings);
    return neco->definition()["max_logit"].get<bool>();
  };
  EXPECT_TRUE(is_times_max_logit("vit_small", {}));
  EXPECT_FALSE(is_times_max_logit("vit_small", {{"max_logit", false}}));
  EXPECT_FALSE(is_times_max_logit("resnet18", {}));
  EXPECT_TRUE(is_times_max_logit("resnet18", {{"max_logit", true}}));
}

}  // namespace kelvin::neco_test
