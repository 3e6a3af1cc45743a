#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/feature_detectors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::knn_test {

torch::Tensor knn_scores(const torch::Tensor& train, const torch::Tensor& test,
                         const Values& values = {}) {
  return scores_of("knn", unclassified(train), unclassified(test), values);
}

TEST(Knn, IsMinusTheDistanceToTheKthNearestDirection) {
  const auto train = doubles({3, 0, 0, 0.1, -7, 0}).view({3, 2});
  const auto test = doubles({9, 0}).view({1, 2});
  for (const auto& [neighbours, distance] :
       std::vector<std::pair<int64_t, double>>{{1, 0}, {2, std::sqrt(2)}, {3, 2}}) {
    expect_close(knn_scores(train, test, {{"neighbours", neighbours}}), doubles({-distance}),
                 1e-15);
  }
}

TEST(Knn, IsThatOfScikitLearn) {
  const auto train = clustered(120, 9, 4, 0);
  const auto test = torch::cat({clustered(20, 9, 4, 1), noise({20, 9}, 2)});
  const auto expected = oracle(R"(
from sklearn.neighbors import NearestNeighbors
unit = lambda m: m / np.linalg.norm(m, axis=1, keepdims=True)
for k in (1, 50, 120):
    search = NearestNeighbors(n_neighbors=k, algorithm="kd_tree").fit(unit(x["train"]))
    out[str(k)] = -search.kneighbors(unit(x["test"]))[0][:, -1]
)",
                               {{"train", train}, {"test", test}});
  expect_close(knn_scores(train, test, {{"neighbours", 1}}), expected.at("1"), 1e-12);
  expect_close(knn_scores(train, test), expected.at("50"), 1e-12);
  expect_close(knn_scores(train, test, {{"neighbours", 120}}), expected.at("120"), 1e-12);
}

TEST(Knn, TakesNoMoreNeighboursThanThereAre) {
  const auto knn = make_detector("knn");
  EXPECT_EQ(knn->definition()["neighbours"], 50);
  knn->fit(unclassified(doubles({1, 0, 0, 1}).view({2, 2})));
  EXPECT_EQ(knn->definition()["neighbours"], 2);
  expect_close(knn->score(unclassified(doubles({2, 0}).view({1, 2}))), doubles({-std::sqrt(2)}),
               1e-15);
}

TEST(Knn, IgnoresRotationsAndTheScaleOfEachSample) {
  const auto train = clustered(80, 6, 4, 2);
  const auto test = noise({20, 6}, 3);
  const auto turned = rotation(6, 4);
  const auto scores = knn_scores(train, test);
  expect_close(knn_scores(train.matmul(turned), test.matmul(turned)), scores, 1e-12);
  expect_close(knn_scores(train * noise({80, 1}, 5).abs(), test * (1e-3 + noise({20, 1}, 6).abs())),
               scores, 1e-12);
}

TEST(Knn, TakesFeaturesWhoseSquaresAreInfinite) {
  const auto train = noise({60, 5}, 20);
  const auto test = noise({7, 5}, 21);
  expect_close(knn_scores(1e200 * train, 1e250 * test), knn_scores(train, test), 1e-9);
}

TEST(Knn, LeavesTheZeroVectorWhereItIs) {
  const auto train = noise({70, 4}, 0);
  const auto zero = torch::zeros({1, 4}, torch::kFloat64);
  expect_close(knn_scores(train, zero), doubles({-1}), 1e-14);
  expect_close(knn_scores(torch::zeros({9, 4}, torch::kFloat64), train), -torch::ones({70}), 1e-14);
  expect_close(knn_scores(torch::zeros({9, 4}, torch::kFloat64), zero), doubles({0}), 0);
}

TEST(Knn, OfConstantFeaturesIsTheDistanceToTheirDirection) {
  const auto train = torch::full({9000, 4}, 0.1, torch::kFloat64);
  const auto test = doubles({5, 5, 5, 5, 0, 1, 0, 0, -3, -3, -3, -3}).view({3, 4});
  expect_close(knn_scores(train, test), doubles({0, -1, -2}), 1e-14);
}

TEST(Knn, NeedsNoLabelsAndWorksOfOneClass) {
  auto train = unclassified(clustered(60, 6, 4, 3));
  const auto test = unclassified(noise({5, 6}, 4));
  const auto scores = scores_of("knn", train, test);
  train.labels = torch::zeros_like(train.labels);
  expect_close(scores_of("knn", train, test), scores, 0);
  train.labels = torch::Tensor();
  expect_close(scores_of("knn", train, test), scores, 0);
}

TEST(Knn, GivesOodSamplesLowerScores) {
  const auto train = clustered(200, 12, 4, 0);
  expect_lower(knn_scores(train, noise({50, 12}, 1)), knn_scores(train, clustered(50, 12, 4, 2)));
}

TEST(Knn, RejectsNoNeighboursAndNumbersThatAreNone) {
  EXPECT_EQ(error_of([] {
              make_detector("knn", {{"neighbours", 0}});
            }),
            "detector.knn.neighbours: must be at least 1, got 0");
  auto test = noise({2, 3}, 1);
  test[1][1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(error_of([&] {
              knn_scores(noise({9, 3}, 0), test);
            }),
            "knn: features must be finite, have a NaN or an infinity");
}

}  // namespace kelvin::knn_test
