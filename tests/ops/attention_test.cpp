#include "kelvin/ops/attention.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <vector>

#include "kelvin/kernels/bf16_attention.h"
#include "tests/support/errors.h"

namespace kelvin::attention_test {

constexpr double kFactor = 0.125;

struct Factors {
  torch::Tensor left;   // [3, 4, 7, 5]
  torch::Tensor right;  // [3, 4, 5, 6]
};

// As they lie in attention: heads of a token side by side, one of them transposed, or without gaps.
std::vector<Factors> layouts() {
  torch::manual_seed(1);
  const auto by_token = torch::randn({3, 7, 4, 5}).transpose(1, 2);
  const auto by_column = torch::randn({3, 6, 4, 5}).permute({0, 2, 3, 1});
  return {{.left = torch::randn({3, 4, 7, 5}), .right = torch::randn({3, 4, 5, 6})},
          {.left = by_token, .right = by_column},
          {.left = torch::randn({3, 4, 5, 7}).transpose(2, 3),
           .right = torch::randn({3, 5, 4, 6}).transpose(1, 2)}};
}

double difference(const torch::Tensor& actual, const torch::Tensor& expected) {
  return (actual.to(torch::kFloat64) - expected).abs().max().item<double>();
}

TEST(BatchedProduct, IsTheProductOfEachPairWhereverTheirNumbersLie) {
  for (const auto& [left, right] : layouts()) {
    ASSERT_TRUE(suits_batched_product(left, right));
    const auto expected =
        kFactor * torch::matmul(left.to(torch::kFloat64), right.to(torch::kFloat64));
    for (const auto order : {ProductOrder::matrices, ProductOrder::rows}) {
      const auto product = batched_product(left, right, kFactor, order);
      EXPECT_EQ(product.sizes(), (torch::IntArrayRef{3, 4, 7, 6}));
      EXPECT_LT(difference(product, expected), 1e-6);
    }
  }
}

TEST(BatchedProduct, LaysHeadsSideBySideIfAsked) {
  const auto [left, right] = layouts().front();
  EXPECT_TRUE(batched_product(left, right).is_contiguous());
  EXPECT_TRUE(batched_product(left, right, 1, ProductOrder::rows).transpose(1, 2).is_contiguous());
}

TEST(BatchedProduct, HasTheGradientsOfMatmul) {
  for (const auto& [left, right] : layouts()) {
    for (const auto order : {ProductOrder::matrices, ProductOrder::rows}) {
      const auto seen = torch::randn({3, 4, 7, 6});
      const auto own = [](const torch::Tensor& tensor, torch::ScalarType type) {
        return tensor.detach().to(type).set_requires_grad(true);
      };
      const auto ours = std::vector{own(left, torch::kFloat32), own(right, torch::kFloat32)};
      batched_product(ours[0], ours[1], kFactor, order).backward(seen);
      const auto exact = std::vector{own(left, torch::kFloat64), own(right, torch::kFloat64)};
      (kFactor * torch::matmul(exact[0], exact[1])).backward(seen.to(torch::kFloat64));
      for (size_t i = 0; i < 2; ++i) EXPECT_LT(difference(ours[i].grad(), exact[i].grad()), 1e-5);
    }
  }
}

// The gradient of a sum is one number, seen everywhere.
TEST(BatchedProduct, TakesAGradientThatIsSpreadOverOneElement) {
  const auto left = torch::ones({1, 1, 1, 4}).set_requires_grad(true);
  const auto right = torch::full({1, 1, 4, 1}, 3.0).set_requires_grad(true);
  batched_product(left, right).sum().backward();
  EXPECT_TRUE(left.grad().eq(3).all().item<bool>());
  EXPECT_TRUE(right.grad().eq(1).all().item<bool>());
}

TEST(BatchedProduct, HasFirstDerivativesOnly) {
  const auto left = torch::ones({1, 1, 2, 4}).set_requires_grad(true);
  const auto right = torch::ones({1, 1, 4, 2}).set_requires_grad(true);
  const auto product = batched_product(left, right).square().sum();
  EXPECT_EQ(error_of([&] {
              torch::autograd::grad({product}, {left}, {}, /*retain_graph=*/true,
                                    /*create_graph=*/true);
            }),
            "batched_product: has first derivatives only; those of higher order need a "
            "ReferenceOpsScope");
}

TEST(BatchedProduct, HasTheSameBitsOnAnyNumberOfThreads) {
  const auto [left, right] = layouts().at(1);
  const auto before = at::get_num_threads();
  at::set_num_threads(1);
  const auto alone = batched_product(left, right);
  at::set_num_threads(3);
  const auto together = batched_product(left, right);
  at::set_num_threads(before);
  EXPECT_TRUE(alone.equal(together));
}

TEST(BatchedProduct, SaysWhatItCannotDo) {
  const auto factors = layouts().front();
  const auto& left = factors.left;
  const auto& right = factors.right;
  EXPECT_FALSE(suits_batched_product(left.to(torch::kFloat64), right.to(torch::kFloat64)));
  EXPECT_FALSE(suits_batched_product(left[0], right[0]));
  EXPECT_FALSE(suits_batched_product(left, right.narrow(2, 0, 4)));
  EXPECT_FALSE(suits_batched_product(left.expand({3, 4, 7, 5}).slice(3, 0, 5, 2), right));
  EXPECT_EQ(error_of([&] { batched_product(left, left); }),
            "batched_product: needs float32 matrices [samples, heads, rows, terms] and [samples, "
            "heads, terms, columns] on a CPU, got [3, 4, 7, 5] and [3, 4, 7, 5]");
}

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
    if (!has_bf16_attention()) GTEST_SKIP() << "no products of bfloat16";
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
  if (!has_bf16_attention()) GTEST_SKIP() << "no products of bfloat16";
  const auto qkv = torch::randn({4, 1, 3 * 64}).to(torch::kBFloat16);
  const auto own = qkv.clone().set_requires_grad(true);
  const auto mixed = bfloat16_attention(own, 2, 1);
  EXPECT_TRUE(mixed.equal(qkv.chunk(3, -1)[2]));
  mixed.sum().backward();
  EXPECT_TRUE(own.grad().chunk(3, -1)[0].equal(torch::zeros({4, 1, 64}, torch::kBFloat16)));
}

TEST(Bfloat16Attention, SurvivesLargeLogits) {
  if (!has_bf16_attention()) GTEST_SKIP() << "no products of bfloat16";
  const auto qkv = (100 * torch::randn({1, 20, 3 * 32})).to(torch::kBFloat16);
  const auto own = qkv.clone().set_requires_grad(true);
  const auto mixed = bfloat16_attention(own, 1, 10);
  mixed.sum().backward();
  EXPECT_TRUE(mixed.isfinite().all().item<bool>());
  EXPECT_TRUE(own.grad().isfinite().all().item<bool>());
}

TEST(Bfloat16Attention, HasFirstDerivativesOnly) {
  if (!has_bf16_attention()) GTEST_SKIP() << "no products of bfloat16";
  const auto qkv = torch::ones({1, 2, 3 * 32}, torch::kBFloat16).set_requires_grad(true);
  const auto sum = bfloat16_attention(qkv, 1, 1).square().sum();
  EXPECT_EQ(error_of([&] {
              torch::autograd::grad({sum}, {qkv}, {}, /*retain_graph=*/true,
                                    /*create_graph=*/true);
            }),
            "bfloat16_attention: has first derivatives only; those of higher order need a "
            "ReferenceOpsScope");
}

TEST(Bfloat16Attention, SaysWhatItCannotDo) {
  const auto qkv = torch::zeros({2, 4, 3 * 64}, torch::kBFloat16);
  EXPECT_EQ(suits_bfloat16_attention(qkv, 2), has_bf16_attention());
  EXPECT_FALSE(suits_bfloat16_attention(qkv, 3));
  EXPECT_FALSE(suits_bfloat16_attention(qkv, 4));
  EXPECT_FALSE(suits_bfloat16_attention(qkv.to(torch::kFloat32), 2));
  EXPECT_FALSE(suits_bfloat16_attention(qkv.transpose(0, 1), 2));
  EXPECT_FALSE(suits_bfloat16_attention(torch::zeros({1, 2049, 96}, torch::kBFloat16), 1));
  EXPECT_EQ(error_of([&] { bfloat16_attention(qkv, 4, 1); }),
            "bfloat16_attention: needs bfloat16 [samples, tokens, 3 * heads * width] with a width "
            "that is a multiple of 32 and at most 2048 tokens, got [2, 4, 192] for 4 heads");
}

}  // namespace kelvin::attention_test
