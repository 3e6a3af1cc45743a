#include "kelvin/ops/neco.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/gradients.h"
#include "tests/support/tensors.h"

// tests/measures/detectors/neco_test.cpp compares scores with scikit-learn's.

namespace kelvin::ops_neco_test {

TEST(NecoScores, AreTheFractionAlongThePrincipalDirection) {
  // Two features that always agree: the direction is (1, 1).
  const auto train = doubles({-1, -1, 1, 1}).view({-1, 2});
  const auto features = doubles({3, 3, 2, -2, 5, 0}).view({-1, 2});
  expect_close(neco_scores(features, train, 1), doubles({1, 0, std::sqrt(0.5)}), 1e-12);
}

TEST(NecoScores, LeaveDirectionsBeyondTheRankOut) {
  const auto train = noise({30, 2}, 1).matmul(noise({2, 6}, 2));
  const auto features = noise({9, 6}, 3);
  const auto scores = neco_scores(features, train, 2);
  for (const int64_t count : {3, 5, 6}) {
    expect_close(neco_scores(features, train, count), scores, 1e-12);
  }
  EXPECT_LT(scores.max().item<double>(), 1);
}

TEST(NecoScores, AreAllOneAlongAllDirections) {
  EXPECT_TRUE(
      neco_scores(noise({9, 6}, 3), noise({30, 6}, 1), 6).equal(torch::ones(9, torch::kFloat64)));
}

TEST(NecoScores, HaveTheGradientOfCentralDifferences) {
  const auto train = noise({30, 6}, 1);
  expect_gradient([&](const torch::Tensor& features) { return neco_scores(features, train, 2); },
                  noise({3, 6}, 2));
}

TEST(PrincipalAxes, StandardiseAllButConstantFeatures) {
  const auto covariance = torch::diag(doubles({4, 0, 1}));
  const auto axes = principal_axes(doubles({7, 5, 0}), covariance, /*scaler=*/true);
  expect_close(axes.deviations, doubles({2, 1, 1}), 0);
  expect_close(axes.variances, doubles({1, 1, 0}), 1e-15);
  EXPECT_EQ(axes.rank.item<int64_t>(), 2);
  const auto plain = principal_axes(doubles({7, 5, 0}), covariance, /*scaler=*/false);
  expect_close(plain.deviations, doubles({1, 1, 1}), 0);
  expect_close(plain.variances, doubles({4, 1, 0}), 1e-15);
}

TEST(NecoScores, RejectWhatCannotBeScored) {
  const auto train = noise({30, 6}, 1);
  EXPECT_EQ(error_of([&] { neco_scores(train[0], train, 1); }),
            "neco: features must be [samples, dims], are of 1 dimensions");
  EXPECT_EQ(error_of([&] { neco_scores(train, train.narrow(1, 0, 5), 1); }),
            "neco: training features must have 6 dims as the others, have 5");
  EXPECT_EQ(error_of([&] { neco_scores(train, train, 0); }),
            "neco: dimensions must be in [1, 6], got 0");
}

}  // namespace kelvin::ops_neco_test
