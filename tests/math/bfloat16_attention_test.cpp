#include "kelvin/math/bfloat16_attention.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <vector>

#include "kelvin/math/brain_attention_kernels.h"
#include "tests/support/errors.h"

namespace kelvin {
namespace {

struct Case {
  int64_t samples = 0;
  int64_t tokens = 0;
  int64_t heads = 0;
  int64_t width = 0;
};

torch::Tensor plain_attention(const torch::Tensor& qkv, int64_t heads, double factor) {
  const auto samples = qkv.size(0);
  const auto tokens = qkv.size(1);
  const auto width = qkv.size(2) / (3 * heads);
  const auto parts =
      qkv.view({samples, tokens, 3, heads, width}).permute({2, 0, 3, 1, 4}).unbind(0);
  const auto shares = (parts[0].matmul(parts[1].transpose(-2, -1)) * factor).softmax(-1);
  return shares.matmul(parts[2]).transpose(1, 2).reshape({samples, tokens, heads * width});
}

double error(const torch::Tensor& ours, const torch::Tensor& exact) {
  return ((ours.to(torch::kFloat64) - exact).norm() / exact.norm()).item<double>();
}

class Bfloat16Attention : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!has_brain_attention()) GTEST_SKIP() << "no products of bfloat16";
  }
};

TEST_P(Bfloat16Attention, IsSoftmaxAttentionInDoublePrecisionButForRounding) {
  const auto [samples, tokens, heads, width] = GetParam();
  constexpr double kFactor = 0.3;
  torch::manual_seed(0);
  const auto qkv = torch::randn({samples, tokens, 3 * heads * width}).to(torch::kBFloat16);
  const auto seen = torch::randn({samples, tokens, heads * width}).to(torch::kBFloat16);
  const auto exact = qkv.to(torch::kFloat64).set_requires_grad(true);
  const auto expected = plain_attention(exact, heads, kFactor);
  expected.backward(seen.to(torch::kFloat64));
  for (const int threads : {1, 3}) {
    const auto before = at::get_num_threads();
    at::set_num_threads(threads);
    const auto own = qkv.clone().set_requires_grad(true);
    const auto result = bfloat16_attention(own, heads, kFactor);
    result.backward(seen);
    at::set_num_threads(before);
    EXPECT_EQ(result.scalar_type(), torch::kBFloat16);
    constexpr double kRounding = 6e-3;
    EXPECT_LT(error(result, expected), kRounding);
    // Queries, keys and values each, or large ones would hide small ones.
    const auto parts = own.grad().chunk(3, -1);
    const auto exact_parts = exact.grad().chunk(3, -1);
    for (size_t i = 0; i < 3; ++i) {
      if (tokens == 1 && i < 2) continue;  // a single share is 1, whatever it is of
      EXPECT_LT(error(parts[i], exact_parts[i]), kRounding) << i;
    }
  }
}

// One token; fewer and more than sixteen, multiples of it and not, odd and even; several blocks of
// rows; heads of one and more panels.
INSTANTIATE_TEST_SUITE_P(Shapes, Bfloat16Attention,
                         testing::Values(Case{1, 1, 1, 32}, Case{2, 5, 3, 32}, Case{3, 16, 2, 64},
                                         Case{2, 65, 6, 64}, Case{1, 48, 1, 96},
                                         Case{2, 33, 2, 32}));

TEST(Bfloat16Attention, GivesASingleTokenItsOwnValue) {
  if (!has_brain_attention()) GTEST_SKIP() << "no products of bfloat16";
  const auto qkv = torch::randn({4, 1, 3 * 64}).to(torch::kBFloat16);
  const auto own = qkv.clone().set_requires_grad(true);
  const auto mixed = bfloat16_attention(own, 2, 1);
  EXPECT_TRUE(mixed.equal(qkv.chunk(3, -1)[2]));
  mixed.sum().backward();
  EXPECT_TRUE(own.grad().chunk(3, -1)[0].equal(torch::zeros({4, 1, 64}, torch::kBFloat16)));
}

TEST(Bfloat16Attention, SurvivesLargeLogits) {
  if (!has_brain_attention()) GTEST_SKIP() << "no products of bfloat16";
  const auto qkv = (100 * torch::randn({1, 20, 3 * 32})).to(torch::kBFloat16);
  const auto own = qkv.clone().set_requires_grad(true);
  const auto mixed = bfloat16_attention(own, 1, 10);
  mixed.sum().backward();
  EXPECT_TRUE(mixed.isfinite().all().item<bool>());
  EXPECT_TRUE(own.grad().isfinite().all().item<bool>());
}

TEST(Bfloat16Attention, HasFirstDerivativesOnly) {
  if (!has_brain_attention()) GTEST_SKIP() << "no products of bfloat16";
  const auto qkv = torch::ones({1, 2, 3 * 32}, torch::kBFloat16).set_requires_grad(true);
  const auto sum = bfloat16_attention(qkv, 1, 1).square().sum();
  EXPECT_EQ(
      error_of([&] {
        torch::autograd::grad({sum}, {qkv}, {}, /*retain_graph=*/true,
                              /*create_graph=*/true);
      }),
      "bfloat16_attention: has first derivatives only; those of higher order need a PlainScope");
}

TEST(Bfloat16Attention, SaysWhatItCannotDo) {
  const auto qkv = torch::zeros({2, 4, 3 * 64}, torch::kBFloat16);
  EXPECT_EQ(suits_bfloat16_attention(qkv, 2), has_brain_attention());
  EXPECT_FALSE(suits_bfloat16_attention(qkv, 3));
  EXPECT_FALSE(suits_bfloat16_attention(qkv, 4));
  EXPECT_FALSE(suits_bfloat16_attention(qkv.to(torch::kFloat32), 2));
  EXPECT_FALSE(suits_bfloat16_attention(qkv.transpose(0, 1), 2));
  EXPECT_FALSE(suits_bfloat16_attention(torch::zeros({1, 2049, 96}, torch::kBFloat16), 1));
  EXPECT_EQ(error_of([&] { bfloat16_attention(qkv, 4, 1); }),
            "bfloat16_attention: needs bfloat16 [samples, tokens, 3 * heads * width] with a width "
            "that is a multiple of 32 and at most 2048 tokens, got [2, 4, 192] for 4 heads");
}

}  // namespace
}  // namespace kelvin
