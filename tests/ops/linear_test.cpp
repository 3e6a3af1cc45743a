#include "kelvin/ops/linear.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <vector>

#include "kelvin/kernels/bf16_linear.h"
#include "tests/support/errors.h"
#include "tests/support/threads.h"

namespace kelvin::linear_test {

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

TEST(BlockedLinear, IsLibTorchs) {
  const auto type = torch::TensorOptions(torch::kFloat64);
  for (const auto& shape : {Sizes{128, 40}, Sizes{1, 5}, Sizes{4, 65, 48}, Sizes{200, 700}}) {
    for (const int64_t outputs : {1, 33, 1100}) {
      const auto input = torch::randn(shape, type);
      const auto weight = torch::randn({outputs, shape.back()}, type).set_requires_grad(true);
      const auto bias = torch::randn({outputs}, type);
      const auto result = blocked_linear(input, weight, bias);
      EXPECT_TRUE(result.allclose(torch::linear(input, weight, bias), 1e-12, 1e-12));
      EXPECT_FALSE(result.requires_grad());
      EXPECT_TRUE(
          blocked_linear(input, weight).allclose(torch::linear(input, weight), 1e-12, 1e-12));
    }
  }
}

TEST(BlockedLinear, HasTheSameBitsOnAnyNumberOfThreads) {
  torch::manual_seed(0);
  for (const auto& shape : {Sizes{204, 128}, Sizes{51, 65, 48}, Sizes{1, 4096}, Sizes{300, 1024}}) {
    for (const int64_t outputs : {10, 100, 1024}) {
      const auto input = torch::randn(shape);
      const auto weight = torch::randn({outputs, shape.back()});
      std::vector<torch::Tensor> results;
      for (const int threads : {1, 2, 3, 4}) {
        const ThreadCount count(threads);
        results.push_back(blocked_linear(input, weight));
        EXPECT_TRUE(results.back().equal(results.front()))
            << shape << " " << outputs << " " << threads;
      }
    }
  }
}

TEST(BlockedLinear, RefusesOtherShapesAndTypes) {
  for (const auto& input : {torch::zeros({8}), torch::zeros({2, 7}),
                            torch::zeros({2, 8}, torch::kFloat64), torch::zeros({0, 8})}) {
    EXPECT_NE(error_of([&] {
                blocked_linear(input, torch::zeros({3, 8}));
              }).find("blocked_linear: needs input [..., inputs] and weight [outputs, inputs]"),
              std::string::npos);
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
            "parallel_linear: has first derivatives only; those of higher order need a "
            "ReferenceOpsScope");
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

struct Case {
  std::vector<int64_t> rows;
  int64_t inputs = 0;
  int64_t outputs = 0;
};

struct Layer {
  torch::Tensor input;
  torch::Tensor weight;
  torch::Tensor bias;

  Layer in(torch::ScalarType type) const {
    return {input.detach().to(type), weight.detach().to(type), bias.detach().to(type)};
  }
  Layer& wants_gradients() {
    for (auto* tensor : {&input, &weight, &bias}) *tensor = tensor->clone().set_requires_grad(true);
    return *this;
  }
};

Layer drawn(const Case& shape) {
  auto sizes = shape.rows;
  sizes.push_back(shape.inputs);
  return {.input = torch::randn(sizes).to(torch::kBFloat16),
          .weight = torch::randn({shape.outputs, shape.inputs}),
          .bias = torch::randn({shape.outputs})};
}

double error(const torch::Tensor& ours, const torch::Tensor& exact) {
  return ((ours.to(torch::kFloat64) - exact).norm() / exact.norm()).item<double>();
}

class Bfloat16Linear : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!has_bf16_linear()) GTEST_SKIP() << "no products of bfloat16";
  }
};

constexpr double kRounding = 4e-3;  // 2^-8, of which two factors and a result are rounded

TEST_P(Bfloat16Linear, IsLibTorchsInDoublePrecisionButForRounding) {
  torch::manual_seed(0);
  const auto layer = drawn(GetParam());
  auto exact = layer.in(torch::kFloat64).wants_gradients();
  const auto expected = torch::linear(exact.input, exact.weight, exact.bias);
  const auto seen = torch::randn(expected.sizes()).to(torch::kBFloat16);
  expected.backward(seen.to(torch::kFloat64));
  for (const int threads : {1, 2, 3}) {
    const auto before = at::get_num_threads();
    at::set_num_threads(threads);
    auto own = Layer(layer).wants_gradients();
    const auto result = bfloat16_linear(own.input, own.weight, own.bias);
    result.backward(seen);
    at::set_num_threads(before);
    EXPECT_EQ(result.scalar_type(), torch::kBFloat16);
    EXPECT_EQ(result.sizes(), expected.sizes());
    EXPECT_LT(error(result, expected), kRounding);
    EXPECT_LT(error(own.input.grad(), exact.input.grad()), kRounding);
    // Nothing is rounded on their way.
    EXPECT_LT(error(own.weight.grad(), exact.weight.grad()), 1e-5);
    EXPECT_LT(error(own.bias.grad(), exact.bias.grad()), 1e-5);
  }
}

// One row; rows that fill no block, blocks of twelve, of four and single ones; more rows than one
// share of the gradient has, an odd number of them, in narrow and wide layers, whose cores sum
// apart or together as there are more or fewer threads; panels that are not full.
INSTANTIATE_TEST_SUITE_P(Shapes, Bfloat16Linear,
                         testing::Values(Case{{1}, 32, 32}, Case{{7}, 64, 96}, Case{{31}, 96, 160},
                                         Case{{128}, 256, 128}, Case{{2, 3, 5}, 32, 64},
                                         Case{{1029}, 64, 32}, Case{{2049}, 32, 96},
                                         Case{{1100}, 512, 288}));

TEST(Bfloat16Linear, IsExactOnSmallWholeNumbers) {
  if (!has_bf16_linear()) GTEST_SKIP() << "no products of bfloat16";
  const auto x = torch::arange(13 * 64, torch::kFloat32).remainder(3).reshape({13, 64});
  const auto w = torch::arange(32 * 64, torch::kFloat32).remainder(2).reshape({32, 64});
  const auto b = torch::arange(32, torch::kFloat32);
  const auto expected = torch::linear(x, w, b);
  EXPECT_TRUE(bfloat16_linear(x, w, b).to(torch::kFloat32).equal(expected));
  EXPECT_TRUE(bfloat16_linear(x, w).to(torch::kFloat32).equal(expected - b));
}

TEST(Bfloat16Linear, ComputesOnlyTheGradientsThatAreWanted) {
  if (!has_bf16_linear()) GTEST_SKIP() << "no products of bfloat16";
  const auto x = torch::randn({4, 32}).set_requires_grad(true);
  const auto w = torch::randn({32, 32});
  const auto b = torch::randn({32}).set_requires_grad(true);
  bfloat16_linear(x, w, b).sum().backward();
  EXPECT_EQ(x.grad().scalar_type(), torch::kFloat32);
  EXPECT_FALSE(w.grad().defined());
  EXPECT_TRUE(b.grad().equal(torch::full({32}, 4.0F)));
  EXPECT_FALSE(bfloat16_linear(x.detach(), w).requires_grad());
}

TEST(Bfloat16Linear, IsTheSameEveryTime) {
  if (!has_bf16_linear()) GTEST_SKIP() << "no products of bfloat16";
  torch::manual_seed(1);
  constexpr int kThreads = 2;
  const auto before = at::get_num_threads();
  at::set_num_threads(kThreads);
  // Of few rows cores sum together, of many apart.
  for (const int64_t rows : {300, kThreads * 1024 + 77}) {
    const auto layer = drawn({{rows}, 64, 96});
    const auto seen = torch::randn({rows, 96}).to(torch::kBFloat16);
    std::vector<Layer> gradients;
    for (int i = 0; i < 3; ++i) {
      auto own = Layer(layer).wants_gradients();
      bfloat16_linear(own.input, own.weight, own.bias).backward(seen);
      gradients.push_back({own.input.grad(), own.weight.grad(), own.bias.grad()});
    }
    for (const auto& again : gradients) {
      EXPECT_TRUE(again.input.equal(gradients.at(0).input)) << rows;
      EXPECT_TRUE(again.weight.equal(gradients.at(0).weight)) << rows;
      EXPECT_TRUE(again.bias.equal(gradients.at(0).bias)) << rows;
    }
  }
  at::set_num_threads(before);
}

// Only sums over rows depend on how these are dealt.
TEST(Bfloat16Linear, GivesARowTheSameBitsAloneAndAmongOthersOnAnyNumberOfThreads) {
  if (!has_bf16_linear()) GTEST_SKIP() << "no products of bfloat16";
  torch::manual_seed(2);
  const auto layer = drawn({{2085}, 64, 96});
  const auto before = at::get_num_threads();
  const auto results = [&](const torch::Tensor& input, int threads) {
    at::set_num_threads(threads);
    const auto x = input.clone().set_requires_grad(true);
    const auto y = bfloat16_linear(x, layer.weight, layer.bias);
    y.backward(torch::ones_like(y));
    at::set_num_threads(before);
    return std::vector{y.detach(), x.grad()};
  };
  const auto together = results(layer.input, 2);
  const auto fewer = results(layer.input, 3);
  const auto alone = results(layer.input.narrow(0, 1500, 1), 1);
  for (size_t i = 0; i < together.size(); ++i) {
    EXPECT_TRUE(fewer[i].equal(together[i])) << i;
    EXPECT_TRUE(alone[i].equal(together[i].narrow(0, 1500, 1))) << i;
  }
}

TEST(Bfloat16Linear, HasFirstDerivativesOnly) {
  if (!has_bf16_linear()) GTEST_SKIP() << "no products of bfloat16";
  const auto x = torch::ones({2, 32}).set_requires_grad(true);
  const auto sum = bfloat16_linear(x, torch::ones({32, 32})).square().sum();
  EXPECT_EQ(error_of([&] {
              torch::autograd::grad({sum}, {x}, {}, /*retain_graph=*/true,
                                    /*create_graph=*/true);
            }),
            "bfloat16_linear: has first derivatives only; those of higher order need a "
            "ReferenceOpsScope");
}

TEST(Bfloat16Linear, SaysWhatItCannotDo) {
  const auto x = torch::zeros({2, 32});
  EXPECT_EQ(suits_bfloat16_linear(x, torch::zeros({64, 32})), has_bf16_linear());
  EXPECT_FALSE(suits_bfloat16_linear(x, torch::zeros({10, 32})));
  EXPECT_FALSE(suits_bfloat16_linear(x, torch::zeros({64, 64})));
  EXPECT_FALSE(suits_bfloat16_linear(x, torch::zeros({32, 64}).t()));
  EXPECT_FALSE(suits_bfloat16_linear(torch::zeros({0, 32}), torch::zeros({64, 32})));
  EXPECT_FALSE(suits_bfloat16_linear(x.to(torch::kFloat64), torch::zeros({64, 32})));
  EXPECT_EQ(error_of([&] {
              bfloat16_linear(x, torch::zeros({10, 32}));
            }),
            "bfloat16_linear: needs input [..., inputs] and float32 weight [outputs, inputs], both "
            "multiples of 32, got [2, 32] and [10, 32]");
}

}  // namespace kelvin::linear_test
