#include "kelvin/ops/gelu.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <limits>

#include "kelvin/kernels/gelu.h"
#include "tests/support/errors.h"

namespace kelvin::gelu_test {

// Values and slopes, with a gradient of 2 behind them.
struct Curve {
  torch::Tensor values;
  torch::Tensor slopes;
};

template <class Function>
Curve curve_of(const Function& function, const torch::Tensor& x) {
  const auto leaf = x.clone().set_requires_grad(true);
  const auto y = function(leaf);
  y.backward(torch::full_like(y, 2));
  return {y.detach(), leaf.grad()};
}

Curve exact(const torch::Tensor& x) {
  return curve_of([](const torch::Tensor& leaf) { return torch::gelu(leaf); },
                  x.to(torch::kFloat64));
}

double worst(const torch::Tensor& ours, const torch::Tensor& expected) {
  return (ours.to(torch::kFloat64) - expected).abs().max().item<double>();
}

class OnePassGelu : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_gelu_kernels()) GTEST_SKIP() << "no vectors for it";
  }
};

TEST_F(OnePassGelu, IsLibTorchsInDoublePrecision) {
  const auto x = torch::linspace(-20, 20, 40007);  // no multiple of sixteen
  const auto ours = curve_of(one_pass_gelu, x);
  const auto expected = exact(x);
  const auto relative = (ours.values.to(torch::kFloat64) - expected.values).abs() / (x.abs() + 1);
  EXPECT_LT(relative.max().item<double>(), 4e-7);
  EXPECT_LT(worst(ours.slopes, expected.slopes), 2e-6);
}

TEST_F(OnePassGelu, IsItRoundedInBfloat16) {
  const auto x = torch::linspace(-8, 8, 3001).to(torch::kBFloat16);
  const auto ours = curve_of(one_pass_gelu, x);
  const auto expected = exact(x);
  EXPECT_EQ(ours.values.scalar_type(), torch::kBFloat16);
  const auto relative =
      (ours.values.to(torch::kFloat64) - expected.values).abs() / (expected.values.abs() + 1e-4);
  EXPECT_LT(relative.max().item<double>(), 1.0 / 256);
  EXPECT_LT(worst(ours.slopes, expected.slopes), 1.0 / 128);
}

TEST_F(OnePassGelu, HandsOnWhatIsNotFinite) {
  constexpr auto kInfinity = std::numeric_limits<float>::infinity();
  const auto y = one_pass_gelu(torch::tensor({kInfinity, NAN, 1e30F, -1e30F, 0.0F}));
  EXPECT_EQ(y[0].item<float>(), kInfinity);
  EXPECT_TRUE(y[1].isnan().item<bool>());
  EXPECT_EQ(y[2].item<float>(), 1e30F);
  EXPECT_EQ(y[3].item<float>(), 0);
  EXPECT_EQ(y[4].item<float>(), 0);
}

TEST_F(OnePassGelu, HasFirstDerivativesOnly) {
  const auto x = torch::ones({3}).set_requires_grad(true);
  const auto sum = one_pass_gelu(x).square().sum();
  EXPECT_EQ(
      error_of([&] {
        torch::autograd::grad({sum}, {x}, {}, /*retain_graph=*/true,
                              /*create_graph=*/true);
      }),
      "one_pass_gelu: has first derivatives only; those of higher order need a ReferenceOpsScope");
}

TEST_F(OnePassGelu, SaysWhatItCannotDo) {
  EXPECT_FALSE(suits_one_pass_gelu(torch::zeros({2}, torch::kFloat64)));
  EXPECT_FALSE(suits_one_pass_gelu(torch::zeros({2, 3}).t()));
  EXPECT_EQ(error_of([] { one_pass_gelu(torch::zeros({2}, torch::kFloat64)); }),
            "one_pass_gelu: needs float32 or bfloat16 on a CPU with its vectors, without gaps, got "
            "Double of sizes [2]");
}

}  // namespace kelvin::gelu_test
