#include "kelvin/ops/layer_matrices.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::layer_matrices_test {

TEST(LayerMatrices, MakeALinearMapItsOwnProduct) {
  const auto weight = noise({3, 4}, 1);
  const auto input = noise({5, 4}, 2);
  expect_close(weight_matrix(weight).mm(input_matrix(weight, input)),
               product_matrix(weight, torch::linear(input, weight)), 1e-14);
}

TEST(LayerMatrices, HaveAColumnForEachToken) {
  const auto weight = noise({3, 4}, 1);
  const auto input = noise({5, 7, 4}, 2);
  const auto matrix = input_matrix(weight, input);
  EXPECT_EQ(matrix.sizes(), (torch::IntArrayRef{4, 35}));
  expect_close(weight.mm(matrix), product_matrix(weight, torch::linear(input, weight)), 1e-14);
}

TEST(LayerMatrices, MakeAConvolutionAProductWithItsPatches) {
  for (const int64_t stride : {1, 2}) {
    for (const int64_t padding : {0, 1, 2}) {
      const auto weight = noise({3, 2, 3, 5}, 1);
      const auto input = noise({4, 2, 7, 9}, 2);
      const auto product = torch::conv2d(input, weight, {}, stride, padding);
      const auto matrix = input_matrix(weight, input, {.stride = stride, .padding = padding});
      expect_close(weight_matrix(weight).mm(matrix), product_matrix(weight, product), 1e-13);
    }
  }
}

TEST(LayerMatrices, OrderPatchesBySampleAndThenRowByRow) {
  const auto weight = torch::ones({1, 1, 1, 1});
  const auto input = torch::arange(12, torch::kFloat32).view({2, 1, 2, 3});
  EXPECT_TRUE(input_matrix(weight, input).flatten().equal(torch::arange(12, torch::kFloat32)));
}

TEST(LayerMatrices, DoNotDependOnTheMemoryFormat) {
  const auto weight = noise({3, 2, 3, 3}, 1);
  const auto input = noise({4, 2, 6, 6}, 2);
  const auto last = torch::MemoryFormat::ChannelsLast;
  EXPECT_TRUE(input_matrix(weight, input.contiguous(last)).equal(input_matrix(weight, input)));
  EXPECT_TRUE(weight_matrix(weight.contiguous(last)).equal(weight_matrix(weight)));
}

TEST(LayerMatrices, RejectShapesThatDoNotFit) {
  EXPECT_EQ(error_of([] {
              weight_matrix(torch::zeros({2, 3, 4}));
            }),
            "layer matrices: weight must have 2 or 4 dimensions, has 3");
  EXPECT_EQ(error_of([] {
              input_matrix(torch::zeros({2, 3}), torch::zeros({5, 4}));
            }),
            "layer matrices: input must end in 3, is [5, 4]");
  EXPECT_EQ(error_of([] {
              input_matrix(torch::zeros({2, 3, 1, 1}), torch::zeros({5, 4, 6, 6}));
            }),
            "layer matrices: input must be [samples, 3, height, width], is [5, 4, 6, 6]");
}

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

}  // namespace kelvin::layer_matrices_test
