#include "kelvin/ops/libtorch.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace kelvin::libtorch_test {

TEST(LibTorch, HasNoTensorWhereNoneIsDefined) {
  EXPECT_FALSE(if_defined({}).has_value());
  const auto tensor = torch::ones({2});
  ASSERT_TRUE(if_defined(tensor).has_value());
  EXPECT_TRUE(if_defined(tensor)->is_same(tensor));
}

TEST(LibTorch, FindsTheStateOfAParameterByTheParameterItself) {
  const auto parameter = torch::ones({2});
  const auto alias = parameter;
  EXPECT_EQ(optimizer_state_key(parameter), optimizer_state_key(alias));
  EXPECT_NE(optimizer_state_key(parameter), optimizer_state_key(parameter.clone()));
}

TEST(LibTorch, SwitchesAutocastToBfloat16) {
  const auto left = torch::ones({2, 2});
  ASSERT_FALSE(is_autocast_enabled(torch::kCPU));
  set_autocast_enabled(torch::kCPU, true);
  const bool was_enabled = is_autocast_enabled(torch::kCPU);
  const auto product = torch::matmul(left, left);
  set_autocast_enabled(torch::kCPU, false);
  EXPECT_TRUE(was_enabled);
  EXPECT_EQ(product.scalar_type(), torch::kBFloat16);
  EXPECT_FALSE(is_autocast_enabled(torch::kCPU));
}

TEST(LibTorch, HasNoNumbersOnMeta) {
  EXPECT_TRUE(has_numbers(torch::ones({2})));
  EXPECT_FALSE(has_numbers(torch::ones({2}, torch::kMeta)));
  EXPECT_TRUE(has_sizes(torch::ones({2}, torch::kMeta)));
  EXPECT_EQ(fixed_size(torch::ones({2, 3}, torch::kMeta), 1), 3);
}

}  // namespace kelvin::libtorch_test
