#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/errors.h"
#include "tests/support/feature_detectors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::mahalanobis_test {

torch::Tensor mahalanobis_scores(const torch::Tensor& train, const torch::Tensor& test,
                                 int64_t classes = 4) {
  return scores_of("mahalanobis", unclassified(train, classes), unclassified(test, classes));
}

TEST(Mahalanobis, IsMinusTheSmallestSquaredDistanceInUnitsOfTheScatterWithinClasses) {
  // Two classes around (0, 0) and (10, 0); both scatter by 1 in the first feature, by 2 in the
  // second.
  const auto train =
      doubles({1, 2, 11, 2, -1, -2, 9, -2, 1, -2, 11, -2, -1, 2, 9, 2}).view({-1, 2});
  const auto test = doubles({0, 0, 3, 0, 10, 4, 5, 2}).view({-1, 2});
  expect_close(mahalanobis_scores(train, test, 2), doubles({0, -9, -4, -26}), 1e-12);
}

TEST(Mahalanobis, IsThatOfScikitLearnAlsoWithDeadFeaturesAndFewSamples) {
  auto dead = clustered(80, 9, 4, 0);
  dead.select(1, 3).zero_();
  dead.select(1, 5).fill_(0.1);
  const NamedTensors inputs = {{"full", clustered(80, 9, 4, 0)},
                               {"dead", dead},
                               {"few", clustered(8, 9, 4, 1)},
                               {"test", torch::cat({clustered(20, 9, 4, 2), noise({20, 9}, 3)})}};
  const auto expected = oracle(R"(
from sklearn.covariance import EmpiricalCovariance
for name in ("full", "dead", "few"):
    labels = np.arange(len(x[name])) % 4
    means = np.stack([x[name][labels == c].mean(0) for c in range(4)])
    fit = EmpiricalCovariance(assume_centered=True).fit(x[name] - means[labels])
    d = x["test"][:, None] - means
    out[name] = -np.einsum("nci,ij,ncj->nc", d, fit.precision_, d).min(1)
)",
                               inputs);
  for (const char* name : {"full", "dead", "few"}) {
    expect_ratio(mahalanobis_scores(inputs.at(name), inputs.at("test")), expected.at(name), 1e-8);
  }
}

TEST(Mahalanobis, IgnoresAnyInvertibleLinearMap) {
  const auto train = clustered(60, 6, 4, 4);
  const auto test = clustered(20, 6, 4, 5);
  const auto map = noise({6, 6}, 6);
  const auto offset = noise({6}, 7);
  expect_ratio(mahalanobis_scores(train.matmul(map) + offset, test.matmul(map) + offset),
               mahalanobis_scores(train, test), 1e-8);
}

TEST(Mahalanobis, LeavesOutClassesWithoutSamples) {
  auto train = unclassified(clustered(60, 6, 4, 8), 4);
  const auto test = unclassified(noise({20, 6}, 9), 4);
  const auto scores = scores_of("mahalanobis", train, test);
  train.classes = 9;
  train.labels = train.labels * 2 + 1;  // no one is of an even class
  const auto detector = make_detector("mahalanobis");
  expect_close(fitted_scores(*detector, train, test), scores, 1e-12);
  EXPECT_EQ(detector->definition()["classes"], 4);
}

TEST(Mahalanobis, OfOneClassIsTheDistanceToItsMean) {
  const auto train = doubles({1, 0, -1, 0, 0, 1, 0, -1}).view({-1, 2});
  expect_close(mahalanobis_scores(train, doubles({3, 4, 0, 0}).view({-1, 2}), 1), doubles({-50, 0}),
               1e-12);
}

TEST(Mahalanobis, OfConstantFeaturesTellsNothing) {
  const auto detector = make_detector("mahalanobis");
  detector->fit(unclassified(torch::full({77, 5}, 0.1, torch::kFloat64)));
  EXPECT_EQ(detector->definition()["rank"], 0);
  expect_close(detector->score(unclassified(noise({3, 5}, 0))), torch::zeros({3}), 0);
}

TEST(Mahalanobis, OfCollapsedClassesTellsNothing) {
  // Every sample is the mean of its class: what scatters is the rounding of the means.
  const auto train = noise({3, 5}, 0).index_select(0, torch::arange(90) % 3) / 3;
  const auto detector = make_detector("mahalanobis");
  detector->fit(unclassified(train));
  EXPECT_EQ(detector->definition()["rank"], 0);
  expect_close(detector->score(unclassified(noise({3, 5}, 1))), torch::zeros({3}), 0);
}

TEST(Mahalanobis, KnowsTheRankOfTheScatterAndIgnoresOtherDirections) {
  const auto plane = noise({2, 6}, 10);
  const auto detector = make_detector("mahalanobis");
  detector->fit(unclassified(noise({50, 2}, 11).matmul(plane)));
  EXPECT_EQ(detector->definition()["rank"], 2);
  const auto across = noise({5, 6}, 12);
  const auto basis = std::get<0>(torch::linalg_qr(plane.t()));
  const auto within = across.matmul(basis).matmul(basis.t());
  expect_ratio(detector->score(unclassified(across)), detector->score(unclassified(within)), 1e-8);
}

TEST(Mahalanobis, GivesOodSamplesLowerScores) {
  const auto train = clustered(200, 12, 4, 0);
  expect_lower(mahalanobis_scores(train, 4 * noise({50, 12}, 1)),
               mahalanobis_scores(train, clustered(50, 12, 4, 2)));
}

TEST(Mahalanobis, GivesTheZeroVectorItsDistance) {
  const auto train = doubles({2, 0, 0, 0, 1, 1, 1, -1}).view({-1, 2});
  expect_close(mahalanobis_scores(train, torch::zeros({1, 2}), 1), doubles({-2}), 1e-12);
}

TEST(Mahalanobis, NeedsLabels) {
  auto train = unclassified(noise({9, 3}, 0));
  train.labels = torch::Tensor();
  EXPECT_EQ(error_of([&] { make_detector("mahalanobis")->fit(train); }),
            "mahalanobis: needs labels of training samples, which the records do not have");
}

}  // namespace kelvin::mahalanobis_test
