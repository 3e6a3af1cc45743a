#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/feature_detectors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::fdbd_test {

Record classified(const torch::Tensor& features) {
  return features_record(features, noise({4, features.size(1)}, 500), noise({4}, 501));
}

torch::Tensor fdbd_scores(const torch::Tensor& train, const torch::Tensor& test) {
  return scores_of("fdbd", classified(train), classified(test));
}

// Three classes: two along the first feature, one along the second.
Record three_classes(const torch::Tensor& features) {
  return features_record(features, doubles({1, 0, -1, 0, 0, 1}).view({3, 2}),
                         torch::zeros({3}, torch::kFloat64));
}

TEST(Fdbd, IsTheMeanDistanceToTheBoundariesOverThatToTheMean) {
  const auto train = three_classes(doubles({2, 0, 0, 2}).view({2, 2}));  // around (1, 1)
  const auto test = three_classes(doubles({5, 4, 1, 1}).view({2, 2}));
  // Logits 5, -5, 4: boundaries at distances 10 / 2 and 1 / sqrt(2).
  const auto infinity = std::numeric_limits<double>::infinity();
  expect_close(scores_of("fdbd", train, test).slice(0, 0, 1),
               doubles({(5 + std::sqrt(0.5)) / 2 / 5}), 1e-14);
  EXPECT_EQ(scores_of("fdbd", train, test)[1].item<double>(), infinity);  // the mean itself
}

TEST(Fdbd, IsThatOfNumPy) {
  const auto train = clustered(60, 8, 4, 0);
  const auto test = torch::cat({clustered(10, 8, 4, 1), noise({10, 8}, 2)});
  const auto shown = classified(train);
  const auto expected =
      oracle(R"(
w, b = x["weight"], x["bias"]
scores = []
for h in x["test"]:
    f = w @ h + b
    k = np.argmax(f)
    to_boundary = [abs(f[k] - f[c]) / np.linalg.norm(w[k] - w[c]) for c in range(4) if c != k]
    scores.append(np.mean(to_boundary) / np.linalg.norm(h - x["train"].mean(0)))
out["scores"] = np.array(scores)
)",
             {{"train", train}, {"test", test}, {"weight", shown.weight}, {"bias", shown.bias}});
  expect_ratio(fdbd_scores(train, test), expected.at("scores"), 1e-12);
}

TEST(Fdbd, IgnoresRotationsAndScalesOfFeaturesAndOfLogits) {
  const auto train = clustered(60, 6, 4, 3);
  const auto test = noise({20, 6}, 4);
  const auto plain = classified(train);
  const auto turned = rotation(6, 5);
  const auto shown = [&](const torch::Tensor& features) {
    return features_record(5 * features.matmul(turned), 3 * plain.weight.matmul(turned),
                           15 * plain.bias);
  };
  expect_ratio(scores_of("fdbd", shown(train), shown(test)), fdbd_scores(train, test), 1e-10);
}

TEST(Fdbd, IsZeroOnABoundaryToEveryClass) {
  const auto train = three_classes(doubles({2, 0, 0, 2}).view({2, 2}));
  expect_close(scores_of("fdbd", train, three_classes(torch::zeros({1, 2}, torch::kFloat64))),
               doubles({0}), 0);
  // Also where that is the mean.
  const auto around_zero = three_classes(doubles({2, 0, -2, 0}).view({2, 2}));
  expect_close(scores_of("fdbd", around_zero, three_classes(torch::zeros({1, 2}, torch::kFloat64))),
               doubles({0}), 0);
}

TEST(Fdbd, OfConstantFeaturesIsInfiniteAtThem) {
  const auto constant = classified(torch::full({70, 5}, 0.1, torch::kFloat64));
  const auto detector = make_detector("fdbd");
  detector->fit(constant);
  EXPECT_TRUE(torch::isinf(detector->score(constant)).all().item<bool>());
  EXPECT_TRUE(torch::isfinite(detector->score(classified(noise({5, 5}, 0)))).all().item<bool>());
}

TEST(Fdbd, LeavesOutClassesOfEqualWeights) {
  const auto shown = [](const torch::Tensor& features) {
    return features_record(features, doubles({1, 0, 1, 0, 0, 1}).view({3, 2}), doubles({0, -1, 0}));
  };
  const auto train = shown(doubles({1, 0, -1, 0}).view({2, 2}));
  // Logits 3, 2, 0.
  expect_close(scores_of("fdbd", train, shown(doubles({3, 0}).view({1, 2}))),
               doubles({3 / std::sqrt(2) / 3}), 1e-14);
}

TEST(Fdbd, RejectsAClassifierWithoutBoundaries) {
  const auto one_class = features_record(noise({9, 3}, 0), noise({1, 3}, 1), doubles({0}));
  EXPECT_EQ(error_of([&] { make_detector("fdbd")->fit(one_class); }),
            "fdbd: needs two classes whose weights differ, all 1 are equal");
  const auto equal = features_record(noise({9, 3}, 0), torch::ones({4, 3}, torch::kFloat64),
                                     torch::zeros({4}, torch::kFloat64));
  EXPECT_EQ(error_of([&] { make_detector("fdbd")->fit(equal); }),
            "fdbd: needs two classes whose weights differ, all 4 are equal");
}

TEST(Fdbd, NeedsNoLabels) {
  auto train = classified(clustered(60, 6, 4, 3));
  const auto test = classified(noise({5, 6}, 4));
  const auto scores = scores_of("fdbd", train, test);
  train.labels = torch::Tensor();
  expect_close(scores_of("fdbd", train, test), scores, 0);
}

TEST(Fdbd, GivesOodSamplesLowerScores) {
  // A classifier by the means of the classes.
  const auto train = clustered(200, 12, 4, 0);
  const auto weight = train.slice(0, 0, 4) - train.mean(0);
  const auto shown = [&](const torch::Tensor& features) {
    return features_record(features, weight, -train.mean(0).matmul(weight.t()));
  };
  expect_lower(scores_of("fdbd", shown(train), shown(train.mean(0) + 3 * noise({50, 12}, 1))),
               scores_of("fdbd", shown(train), shown(clustered(50, 12, 4, 2))));
}

}  // namespace kelvin::fdbd_test
