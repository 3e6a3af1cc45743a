#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/feature_detectors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::cosine_test {

torch::Tensor cosine_scores(const torch::Tensor& train, const torch::Tensor& test,
                            const Values& values = {}, int64_t classes = 4) {
  return scores_of("cosine", unclassified(train, classes), unclassified(test, classes), values);
}

TEST(Cosine, IsTheLargestToTheMeanOfAClass) {
  // Means (2, 0) and (0, 1).
  const auto train = doubles({1, 0, 0, 1, 3, 0, 0, 1}).view({-1, 2});
  const auto test = doubles({3, 4, -1, 0, -2, -2}).view({-1, 2});
  expect_close(cosine_scores(train, test, {}, 2), doubles({0.8, 0, -std::sqrt(0.5)}), 1e-14);
}

TEST(Cosine, CanBeTakenAroundTheMeanOfAll) {
  // Means (-1, 0) and (1, 0) around (5, 5).
  const auto train = doubles({4, 5, 6, 5, 4, 5, 6, 5}).view({-1, 2});
  const auto test = doubles({9, 5, 5, 7, 4, 4}).view({-1, 2});
  expect_close(cosine_scores(train, test, {{"centred", true}}, 2), doubles({1, 0, std::sqrt(0.5)}),
               1e-14);
}

TEST(Cosine, IsThatOfScikitLearn) {
  const auto train = clustered(80, 9, 4, 0);
  const auto test = noise({30, 9}, 1);
  const auto expected = oracle(R"(
from sklearn.metrics.pairwise import cosine_similarity
labels = np.arange(len(x["train"])) % 4
means = np.stack([x["train"][labels == c].mean(0) for c in range(4)])
mean = x["train"].mean(0)
out["plain"] = cosine_similarity(x["test"], means).max(1)
out["centred"] = cosine_similarity(x["test"] - mean, means - mean).max(1)
)",
                               {{"train", train}, {"test", test}});
  expect_close(cosine_scores(train, test), expected.at("plain"), 1e-12);
  expect_close(cosine_scores(train, test, {{"centred", true}}), expected.at("centred"), 1e-12);
}

TEST(Cosine, IgnoresRotationsAndTheScaleOfEachSample) {
  const auto train = clustered(40, 6, 4, 2);
  const auto test = noise({20, 6}, 3);
  const auto turned = rotation(6, 4);
  const auto scores = cosine_scores(train, test);
  expect_close(cosine_scores(train.matmul(turned), test.matmul(turned)), scores, 1e-12);
  expect_close(cosine_scores(train, test * noise({20, 1}, 5).abs()), scores, 1e-12);
  const auto centred = cosine_scores(train, test, {{"centred", true}});
  const auto moved = 7 * noise({6}, 6);
  expect_close(cosine_scores(train + moved, test + moved, {{"centred", true}}), centred, 1e-12);
}

TEST(Cosine, OfTheZeroVectorIsZero) {
  const auto train = clustered(40, 6, 4, 2);
  expect_close(cosine_scores(train, torch::zeros({1, 6})), doubles({0}), 0);
  expect_close(cosine_scores(train, train.mean(0, true), {{"centred", true}}), doubles({0}), 0);
}

TEST(Cosine, OfOneClassIsThatToItsMeanAndZeroAroundIt) {
  const auto train = doubles({1, 1, 1, -1, 1, 0}).view({-1, 2});
  const auto test = doubles({1, 1, -3, 4}).view({-1, 2});
  expect_close(cosine_scores(train, test, {}, 1), doubles({std::sqrt(0.5), -0.6}), 1e-14);
  expect_close(cosine_scores(train / 3, test, {{"centred", true}}, 1), doubles({0, 0}), 0);
}

TEST(Cosine, OfConstantFeaturesIsThatToTheirDirection) {
  const auto train = torch::full({70, 4}, 0.1, torch::kFloat64);
  const auto test = doubles({5, 5, 5, 5, 1, -1, 1, -1, 1, 0, 0, 0}).view({-1, 4});
  expect_close(cosine_scores(train, test), doubles({1, 0, 0.5}), 1e-14);
  expect_close(cosine_scores(train, test, {{"centred", true}}), doubles({0, 0, 0}), 0);
}

TEST(Cosine, LeavesOutClassesWithoutSamples) {
  auto train = unclassified(clustered(60, 6, 4, 8), 4);
  const auto test = unclassified(noise({20, 6}, 9), 4);
  const auto scores = scores_of("cosine", train, test);
  train.classes = 9;
  train.labels = train.labels * 2 + 1;
  const auto detector = make_detector("cosine");
  expect_close(fitted_scores(*detector, train, test), scores, 1e-14);
  EXPECT_EQ(detector->definition()["classes"], 4);
  EXPECT_EQ(detector->definition()["centred"], false);
}

TEST(Cosine, GivesOodSamplesLowerScores) {
  const auto train = clustered(200, 12, 4, 0);
  for (const bool centred : {false, true}) {
    expect_lower(cosine_scores(train, noise({50, 12}, 1), {{"centred", centred}}),
                 cosine_scores(train, clustered(50, 12, 4, 2), {{"centred", centred}}));
  }
}

TEST(Cosine, NeedsLabels) {
  auto train = unclassified(noise({9, 3}, 0));
  train.labels = torch::Tensor();
  EXPECT_EQ(error_of([&] { make_detector("cosine")->fit(train); }),
            "cosine: needs labels of training samples, which the records do not have");
}

}  // namespace kelvin::cosine_test
