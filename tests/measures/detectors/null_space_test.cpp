#include "kelvin/measures/detectors/null_space.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/errors.h"
#include "tests/support/feature_detectors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::null_space_test {

NullSpace space_of(const Record& train, int64_t dimensions) {
  return null_space_of(*make_detector("residual"), train, dimensions);
}

TEST(NullSpace, HasAsManyPrincipalDimensionsAsPublishedForTheWidth) {
  EXPECT_EQ(published_principal_dimensions(4096), 1000);
  EXPECT_EQ(published_principal_dimensions(2048), 1000);
  EXPECT_EQ(published_principal_dimensions(1024), 512);
  EXPECT_EQ(published_principal_dimensions(768), 512);
  EXPECT_EQ(published_principal_dimensions(512), 300);
  EXPECT_EQ(published_principal_dimensions(64), 32);
  EXPECT_EQ(published_principal_dimensions(1), 0);
  for (int64_t width = 1; width < 3000; ++width) {
    ASSERT_LT(published_principal_dimensions(width), width);
  }
}

TEST(NullSpace, IsWhatTheLargestDirectionsAroundTheOriginLeave) {
  // u = (1, 0): from there all features lie along the second direction.
  const auto train = features_record(doubles({1, 3, 1, -2}).view({-1, 2}),
                                     doubles({1, 0}).view({-1, 2}), doubles({-1}));
  const auto space = space_of(train, 1);
  expect_close(space.origin, doubles({1, 0}), 1e-14);
  EXPECT_EQ(space.principal_dimensions(), 1);
  expect_close(space.directions.abs(), doubles({1, 0}).view({-1, 1}), 1e-14);
  expect_close(space.norms(doubles({4, 9, 0, 0}).view({-1, 2})), doubles({3, 1}), 1e-14);
}

TEST(NullSpace, IsThatOfNumPy) {
  const auto train = clustered(60, 8, 3, 0);
  const auto weight = noise({3, 8}, 1);
  const auto bias = noise({3}, 2);
  const auto expected = oracle(R"(
u = -np.linalg.pinv(x["weight"]) @ x["bias"]
values, vectors = np.linalg.eigh((x["train"] - u).T @ (x["train"] - u))
rest = vectors[:, np.argsort(-values)[5:]]
out["origin"], out["projection"] = u, rest @ rest.T
)",
                               {{"train", train}, {"weight", weight}, {"bias", bias}});
  const auto space = space_of(features_record(train, weight, bias), 5);
  expect_close(space.origin, expected.at("origin"), 1e-12);
  expect_close(space.directions.matmul(space.directions.t()), expected.at("projection"), 1e-10);
}

TEST(NullSpace, OfAClassifierThatSaysNothingIsAroundZero) {
  const auto train =
      features_record(noise({9, 4}, 0), torch::zeros({2, 4}, torch::kFloat64), doubles({1, 2}));
  expect_close(space_of(train, 2).origin, torch::zeros({4}), 0);
}

TEST(NullSpace, RejectsDimensionsThatLeaveNothing) {
  const auto train =
      features_record(noise({9, 4}, 0), noise({2, 4}, 1), torch::zeros({2}, torch::kFloat64));
  EXPECT_EQ(error_of([&] { space_of(train, 4); }),
            "residual: dimensions must be below the number of features, 4, got 4");
  Settings settings("detector.vim", {{"dimensions", -2}});
  EXPECT_EQ(error_of([&] { read_principal_dimensions(settings); }),
            "detector.vim.dimensions: must not be below 0, got -2");
}

}  // namespace kelvin::null_space_test
