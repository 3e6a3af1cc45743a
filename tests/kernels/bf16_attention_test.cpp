#include "kelvin/kernels/bf16_attention.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "kelvin/ops/tensors.h"
#include "tests/support/tensors.h"

namespace kelvin::bf16_attention_test {

constexpr double kFactor = 0.25;

// [samples, tokens, 3, heads, width] to [samples, tokens, heads, width].
torch::Tensor in_double(const torch::Tensor& qkv, double factor) {
  const auto parts = qkv.permute({2, 0, 3, 1, 4}).unbind(0);
  const auto shares = (parts[0].matmul(parts[1].transpose(-2, -1)) * factor).softmax(-1);
  return shares.matmul(parts[2]).transpose(1, 2);
}

double error(const torch::Tensor& ours, const torch::Tensor& exact) {
  return ((ours.to(torch::kFloat64) - exact).norm() / exact.norm()).item<double>();
}

constexpr double kRounding = 6e-3;

class Bf16AttentionKernels : public testing::TestWithParam<Bf16AttentionShape> {
 protected:
  void SetUp() override {
    if (!has_bf16_attention()) GTEST_SKIP() << "no products of bfloat16";
  }
  torch::Tensor drawn(int64_t parts, uint64_t seed) const {
    return noise({shape_.samples, shape_.tokens, parts, shape_.heads, shape_.width}, seed)
        .to(torch::kBFloat16);
  }
  int64_t heads() const { return shape_.samples * shape_.heads; }

  const Bf16AttentionShape shape_ = GetParam();
  const torch::Tensor qkv_ = drawn(3, 1);
  const torch::Tensor gradients_ = drawn(1, 2).squeeze(2);
};

TEST_P(Bf16AttentionKernels, AreSoftmaxAttentionOfEveryHead) {
  const auto exact = qkv_.to(torch::kFloat64).set_requires_grad(true);
  const auto expected = in_double(exact, kFactor);
  expected.backward(gradients_.to(torch::kFloat64));
  auto mixed = torch::full_like(gradients_, NAN);
  bf16_attention(shape_, numbers(qkv_), 0, heads(), numbers(mixed));
  auto back = torch::full_like(qkv_, NAN);
  bf16_attention_back(shape_, numbers(qkv_), numbers(gradients_), 0, heads(), numbers(back));
  for (int64_t head = 0; head < shape_.heads; ++head) {
    EXPECT_LT(error(mixed.select(2, head), expected.select(2, head)), kRounding) << head;
    for (int64_t part = 0; part < 3; ++part) {
      if (shape_.tokens == 1 && part < 2) continue;  // a single share is 1, whatever it is of
      const auto of_head = [&](const torch::Tensor& all) {
        return all.select(2, part).select(2, head);
      };
      EXPECT_LT(error(of_head(back), of_head(exact.grad())), kRounding) << head << ", " << part;
    }
  }
}

// From the last to the first, so that none may write what is another's.
TEST_P(Bf16AttentionKernels, GiveAHeadTheSameBitsAloneAndAmongOthers) {
  auto mixed = torch::full_like(gradients_, NAN);
  auto back = torch::full_like(qkv_, NAN);
  bf16_attention(shape_, numbers(qkv_), 0, heads(), numbers(mixed));
  bf16_attention_back(shape_, numbers(qkv_), numbers(gradients_), 0, heads(), numbers(back));
  auto mixed_alone = torch::full_like(gradients_, NAN);
  auto back_alone = torch::full_like(qkv_, NAN);
  for (auto head = heads() - 1; head >= 0; --head) {
    bf16_attention(shape_, numbers(qkv_), head, head + 1, numbers(mixed_alone));
    bf16_attention_back(shape_, numbers(qkv_), numbers(gradients_), head, head + 1,
                        numbers(back_alone));
  }
  EXPECT_TRUE(mixed_alone.equal(mixed));
  EXPECT_TRUE(back_alone.equal(back));
}

// One token; an odd number and an even one below sixteen, one more than a multiple of it; blocks of
// twelve, four and one row; one and several panels of a head's width; as many tokens as there may
// be.
INSTANTIATE_TEST_SUITE_P(
    Shapes, Bf16AttentionKernels,
    testing::Values(
        Bf16AttentionShape{.samples = 2, .tokens = 1, .heads = 2, .width = 32, .factor = kFactor},
        Bf16AttentionShape{.samples = 1, .tokens = 2, .heads = 3, .width = 64, .factor = kFactor},
        Bf16AttentionShape{.samples = 2, .tokens = 15, .heads = 1, .width = 96, .factor = kFactor},
        Bf16AttentionShape{.samples = 2, .tokens = 33, .heads = 2, .width = 32, .factor = kFactor},
        Bf16AttentionShape{.samples = 1,
                           .tokens = kBf16AttentionTokens,
                           .heads = 1,
                           .width = 32,
                           .factor = kFactor}));

// Sixteenths are bfloat16, and so are means of values that are multiples of 16.
TEST(Bf16AttentionKernels, MixEquallyWhatHasEqualKeys) {
  if (!has_bf16_attention()) GTEST_SKIP() << "no products of bfloat16";
  auto qkv = noise({1, 16, 3, 1, 32}, 3);
  qkv.select(2, 1).fill_(0.5);
  qkv.select(2, 2).copy_((16 * qkv.select(2, 2)).round().clamp(-8, 8) * 16);
  const auto expected = qkv.select(2, 2).mean(1, true).expand({1, 16, 1, 32});
  const auto brain = qkv.to(torch::kBFloat16);
  auto mixed = torch::empty({1, 16, 1, 32}, torch::kBFloat16);
  bf16_attention({.samples = 1, .tokens = 16, .heads = 1, .width = 32, .factor = 3}, numbers(brain),
                 0, 1, numbers(mixed));
  EXPECT_TRUE(mixed.equal(expected.to(torch::kBFloat16)));
}

// Token i asks for token i + 1 alone: their logit is 64 times the factor, all others are 0.
TEST(Bf16AttentionKernels, HandOnAValueThatHasTheWholeShare) {
  if (!has_bf16_attention()) GTEST_SKIP() << "no products of bfloat16";
  constexpr int64_t kTokens = 19;
  auto qkv = noise({1, kTokens, 3, 1, 32}, 4).to(torch::kBFloat16);
  const auto apart = (8 * torch::eye(32)).narrow(0, 0, kTokens);
  qkv.select(2, 0)[0].squeeze(1).copy_(apart.roll(-1, 0));
  qkv.select(2, 1)[0].squeeze(1).copy_(apart);
  for (const float factor : {32.0F, 1e13F, 1e30F}) {
    auto mixed = torch::empty({1, kTokens, 1, 32}, torch::kBFloat16);
    bf16_attention({.samples = 1, .tokens = kTokens, .heads = 1, .width = 32, .factor = factor},
                   numbers(qkv), 0, 1, numbers(mixed));
    EXPECT_TRUE(mixed.equal(qkv.select(2, 2).roll(-1, 1))) << factor;
  }
}

}  // namespace kelvin::bf16_attention_test
