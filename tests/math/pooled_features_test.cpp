#include "kelvin/math/pooled_features.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

TEST(PooledFeatures, AreMeansOfTheQuartersOfAMap) {
  const auto map = torch::arange(16, torch::kFloat64).view({1, 1, 4, 4});
  expect_close(pooled_features(map, 2), doubles({2.5, 4.5, 10.5, 12.5}).unsqueeze(0), 0);
  expect_close(pooled_features(map, 1), doubles({7.5}).unsqueeze(0), 0);
}

TEST(PooledFeatures, LeaveSmallMapsAndRowsAsTheyAre) {
  const auto map = noise({3, 2, 2, 1}, 0);
  expect_close(pooled_features(map, 2), map.flatten(1), 0);
  const auto rows = noise({3, 5}, 0);
  expect_close(pooled_features(rows, 2), rows, 0);
}

TEST(PooledFeatures, AreTheMeanOverTokens) {
  const auto tokens = noise({2, 7, 3}, 0);
  expect_close(pooled_features(tokens, 2), tokens.mean(1), 1e-15);
}

TEST(PooledFeatures, AreAllOfThemWithoutPooling) {
  EXPECT_EQ(pooled_features(noise({2, 3, 4, 5}, 0), 0).size(1), 60);
  EXPECT_EQ(pooled_features(noise({2, 7, 3}, 0), 0).size(1), 21);
}

TEST(PooledFeatures, RejectWhatHasNoFeatures) {
  EXPECT_EQ(error_of([] { pooled_features(torch::zeros({4}), 2); }),
            "pooled_features: needs samples and features, got [4]");
  EXPECT_EQ(error_of([] {
              pooled_features(torch::zeros({4, 2}), -1);
            }),
            "pooled_features: pool must not be below 0, got -1");
}

}  // namespace
}  // namespace kelvin
