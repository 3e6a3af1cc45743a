#include "kelvin/math/parallel_linear.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <vector>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

using Sizes = std::vector<int64_t>;

// The result, and the gradients of input, weight and bias.
std::vector<torch::Tensor> outcomes(const Sizes& shape, int64_t outputs, bool has_bias,
                                    bool is_ours) {
  torch::manual_seed(0);
  const auto type = torch::TensorOptions(torch::kFloat64);
  const auto input = torch::randn(shape, type).set_requires_grad(true);
  const auto weight = torch::randn({outputs, shape.back()}, type).set_requires_grad(true);
  const auto bias =
      has_bias ? torch::randn({outputs}, type).set_requires_grad(true) : torch::Tensor();
  const auto result =
      is_ours ? parallel_linear(input, weight, bias) : torch::linear(input, weight, bias);
  result.backward(torch::randn(result.sizes(), type));
  std::vector<torch::Tensor> all = {result.detach(), input.grad(), weight.grad()};
  if (has_bias) all.push_back(bias.grad());
  return all;
}

TEST(ParallelLinear, IsLibTorchs) {
  for (const int threads : {1, 2, 3}) {
    const auto before = at::get_num_threads();
    at::set_num_threads(threads);
    for (const auto& shape : {Sizes{128, 40}, Sizes{3, 100}, Sizes{1, 5}, Sizes{4, 65, 48}}) {
      for (const int64_t outputs : {1, 10, 33, 200}) {
        for (const bool has_bias : {false, true}) {
          const auto ours = outcomes(shape, outputs, has_bias, true);
          const auto expected = outcomes(shape, outputs, has_bias, false);
          ASSERT_EQ(ours.size(), expected.size());
          for (size_t i = 0; i < ours.size(); ++i) {
            EXPECT_TRUE(ours[i].allclose(expected[i], 1e-12, 1e-12));
          }
        }
      }
    }
    at::set_num_threads(before);
  }
}

TEST(ParallelLinear, ComputesOnlyTheGradientsThatAreWanted) {
  const auto input = torch::randn({4, 8});
  const auto weight = torch::randn({3, 8}).set_requires_grad(true);
  parallel_linear(input, weight).sum().backward();
  EXPECT_TRUE(weight.grad().defined());
  EXPECT_FALSE(input.grad().defined());
}

TEST(ParallelLinear, RefusesDerivativesOfHigherOrder) {
  const auto weight = torch::randn({3, 8}).set_requires_grad(true);
  const auto result = parallel_linear(torch::randn({4, 8}), weight).square().sum();
  EXPECT_EQ(error_of([&] { result.backward({}, /*retain_graph=*/true, /*create_graph=*/true); }),
            "parallel_linear: has first derivatives only; those of higher order need a PlainScope");
}

TEST(ParallelLinear, IsForManyProductsOnSeveralCores) {
  const auto before = at::get_num_threads();
  at::set_num_threads(2);
  const auto weight = torch::zeros({1024, 1024});
  EXPECT_TRUE(suits_parallel_linear(torch::zeros({128, 1024}), weight));
  EXPECT_FALSE(suits_parallel_linear(torch::zeros({128, 16}), torch::zeros({10, 16})));
  EXPECT_FALSE(suits_parallel_linear(torch::zeros({1024, 128}).t(), weight));
  EXPECT_FALSE(suits_parallel_linear(torch::zeros({128, 1024}, torch::kFloat64), weight));
  at::set_num_threads(1);
  EXPECT_FALSE(suits_parallel_linear(torch::zeros({128, 1024}), weight));
  at::set_num_threads(before);
}

TEST(ParallelLinear, SaysWhatItNeeds) {
  EXPECT_EQ(error_of([] {
              parallel_linear(torch::zeros({2, 3}), torch::zeros({4, 5}));
            }),
            "parallel_linear: needs input [..., inputs] and weight [outputs, inputs], got [2, 3] "
            "and [4, 5]");
}

}  // namespace
}  // namespace kelvin
