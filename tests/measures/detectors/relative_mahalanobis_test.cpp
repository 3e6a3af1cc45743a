#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/errors.h"
#include "tests/support/feature_detectors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::relative_mahalanobis_test {

torch::Tensor relative_scores(const torch::Tensor& train, const torch::Tensor& test,
                              int64_t classes = 4) {
  return scores_of("relative_mahalanobis", unclassified(train, classes),
                   unclassified(test, classes));
}

TEST(RelativeMahalanobis, IsTheDistanceToAllLessThatToTheNearestClass) {
  // Classes around -3 and 3 that scatter by 1; all of them around 0 by sqrt(10).
  const auto train = doubles({-4, 2, -2, 4}).view({-1, 1});
  const auto test = doubles({3, 0, 10}).view({-1, 1});
  expect_close(relative_scores(train, test, 2), doubles({0.9, -9, 10. - 49}), 1e-12);
}

TEST(RelativeMahalanobis, IsThatOfScikitLearnAlsoWithDeadFeaturesAndFewSamples) {
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
    nearest = np.einsum("nci,ij,ncj->nc", d, fit.precision_, d).min(1)
    everything = EmpiricalCovariance().fit(x[name])
    out[name] = everything.mahalanobis(x["test"]) - nearest
)",
                               inputs);
  for (const char* name : {"full", "dead", "few"}) {
    expect_ratio(relative_scores(inputs.at(name), inputs.at("test")), expected.at(name), 1e-7);
  }
}

TEST(RelativeMahalanobis, IgnoresAnyInvertibleLinearMap) {
  const auto train = clustered(60, 6, 4, 4);
  const auto test = clustered(20, 6, 4, 5);
  const auto map = noise({6, 6}, 6);
  const auto offset = noise({6}, 7);
  expect_close(relative_scores(train.matmul(map) + offset, test.matmul(map) + offset),
               relative_scores(train, test), 1e-7);
}

TEST(RelativeMahalanobis, OfOneClassTellsNothing) {
  expect_close(relative_scores(noise({40, 5}, 0), noise({8, 5}, 1), 1), torch::zeros({8}), 0);
}

TEST(RelativeMahalanobis, OfConstantFeaturesTellsNothing) {
  const auto detector = make_detector("relative_mahalanobis");
  detector->fit(unclassified(torch::full({77, 5}, 0.1, torch::kFloat64)));
  EXPECT_EQ(detector->definition()["rank"], 0);
  EXPECT_EQ(detector->definition()["rank_of_all"], 0);
  expect_close(detector->score(unclassified(noise({3, 5}, 0))), torch::zeros({3}), 0);
}

TEST(RelativeMahalanobis, GivesTheZeroVectorItsDistances) {
  const auto train = doubles({-4, 2, -2, 4}).view({-1, 1});
  expect_close(relative_scores(train, torch::zeros({1, 1}), 2), doubles({-9}), 1e-12);
}

TEST(RelativeMahalanobis, LeavesOutClassesWithoutSamples) {
  auto train = unclassified(clustered(60, 6, 4, 8), 4);
  const auto test = unclassified(noise({20, 6}, 9), 4);
  const auto scores = scores_of("relative_mahalanobis", train, test);
  train.classes = 9;
  train.labels = train.labels * 2 + 1;
  expect_ratio(scores_of("relative_mahalanobis", train, test), scores, 1e-11);
}

TEST(RelativeMahalanobis, GivesOodSamplesLowerScores) {
  const auto train = clustered(200, 12, 4, 0);
  expect_lower(relative_scores(train, 4 * noise({50, 12}, 1)),
               relative_scores(train, clustered(50, 12, 4, 2)));
}

TEST(RelativeMahalanobis, NeedsLabels) {
  auto train = unclassified(noise({9, 3}, 0));
  train.labels = torch::Tensor();
  EXPECT_EQ(
      error_of([&] { make_detector("relative_mahalanobis")->fit(train); }),
      "relative_mahalanobis: needs labels of training samples, which the records do not have");
}

}  // namespace kelvin::relative_mahalanobis_test
