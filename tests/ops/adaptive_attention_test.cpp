#include "kelvin/ops/adaptive_attention.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "kelvin/ops/adaptive_softmax.h"
#include "kelvin/ops/reference_ops.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"
#include "tests/support/threads.h"

namespace kelvin::adaptive_attention_test {

struct Tokens {
  torch::Tensor queries, keys, values;

  Tokens to(torch::ScalarType type) const {
    return {queries.to(type), keys.to(type), values.to(type)};
  }
  Tokens leaves() const {
    return {queries.clone().requires_grad_(), keys.clone().requires_grad_(),
            values.clone().requires_grad_()};
  }
};

Tokens tokens(int64_t queries, int64_t keys, int64_t width, int64_t value_width, double size = 2) {
  return {size * noise({2, 3, queries, width}, 1), noise({2, 3, keys, width}, 2),
          noise({2, 3, keys, value_width}, 3)};
}

torch::Tensor attention(const Tokens& tokens, const AdaptiveAttentionOptions& options = {}) {
  return adaptive_attention(tokens.queries, tokens.keys, tokens.values, options);
}

// The composition in double precision, of these numbers.
torch::Tensor exact(const Tokens& tokens, const AdaptiveAttentionOptions& options = {}) {
  return attention(tokens.to(torch::kFloat64), options);
}

double error_against(const torch::Tensor& actual, const torch::Tensor& expected) {
  return (actual.to(torch::kFloat64) - expected).abs().max().item<double>();
}

TEST(AdaptiveAttention, IsItsCompositionInDoublePrecision) {
  const auto all = tokens(5, 40, 8, 6);
  const auto logits = all.queries.matmul(all.keys.transpose(2, 3)) / std::sqrt(8.0);
  expect_close(attention(all), adaptive_softmax(logits).matmul(all.values), 1e-12);
  expect_close(
      attention(all, {.softmax = {.temperature = 2}, .scale = 0.7}),
      adaptive_softmax(logits * std::sqrt(8.0) * 0.7, {.temperature = 2}).matmul(all.values),
      1e-12);
}

TEST(AdaptiveAttention, OfTheKernelIsThatOfDoublePrecision) {
  for (const int64_t keys : {1, 7, 64, 300, 2500}) {
    for (const int64_t queries : {1, 9, 70}) {
      for (const int64_t width : {1, 20, 64}) {
        SCOPED_TRACE(std::to_string(queries) + " " + std::to_string(keys) + " " +
                     std::to_string(width));
        const auto all = tokens(queries, keys, width, width + 3).to(torch::kFloat32);
        for (const bool is_causal : {false, true}) {
          const AdaptiveAttentionOptions options{.is_causal = is_causal};
          EXPECT_LT(error_against(attention(all, options), exact(all, options)), 3e-5);
        }
      }
    }
  }
}

TEST(AdaptiveAttention, HasMasksThatExpand) {
  const auto all = tokens(33, 50, 16, 16).to(torch::kFloat32);
  const auto padding = torch::arange(50).lt(torch::tensor({20, 50}).view({2, 1, 1, 1}));
  const auto some = noise({33, 50}, 4) < 0.5;
  const auto of_heads = noise({3, 1, 50}, 5) < 0.5;
  const auto whole = noise({2, 3, 33, 50}, 6) < 0.5;
  for (const auto& mask : {padding, some, of_heads, whole, some.narrow(1, 0, 1)}) {
    for (const bool is_causal : {false, true}) {
      const AdaptiveAttentionOptions options{.is_causal = is_causal, .mask = mask};
      EXPECT_LT(error_against(attention(all, options), exact(all, options)), 3e-5);
      EXPECT_LT(
          error_against(attention(all, options),
                        exact(all, {.is_causal = is_causal, .mask = mask.expand({2, 3, 33, 50})})),
          3e-5);
    }
  }
}

TEST(AdaptiveAttention, GivesZerosToQueriesThatSeeNoKey) {
  const auto all = tokens(9, 30, 16, 16).to(torch::kFloat32).leaves();
  auto mask = torch::ones({9, 30}, torch::kBool);
  mask[4].fill_(false);
  const auto mixed = attention(all, {.mask = mask});
  expect_close(mixed.select(2, 4), torch::zeros({2, 3, 16}), 0);
  mixed.square().sum().backward();
  expect_close(all.queries.grad().select(2, 4), torch::zeros({2, 3, 16}), 0);
  for (const auto& each : {all.queries, all.keys, all.values}) {
    EXPECT_TRUE(each.grad().isfinite().all().item<bool>());
  }
}

TEST(AdaptiveAttention, GradientIsThatOfDoublePrecision) {
  const auto padding = torch::arange(90).lt(torch::tensor({70, 90}).view({2, 1, 1, 1}));
  for (const bool detach_beta : {false, true}) {
    for (const bool is_causal : {false, true}) {
      const AdaptiveAttentionOptions options{
          .softmax = {.temperature = 1.3, .detach_beta = detach_beta},
          .is_causal = is_causal,
          .mask = padding};
      const auto all = tokens(75, 90, 20, 12, 1);
      const auto leaves = all.to(torch::kFloat32).leaves();
      const auto exact_leaves = all.leaves();
      const auto weights = noise({2, 3, 75, 12}, 7);
      (attention(leaves, options) * weights.to(torch::kFloat32)).sum().backward();
      (attention(exact_leaves, options) * weights).sum().backward();
      EXPECT_LT(error_against(leaves.queries.grad(), exact_leaves.queries.grad()), 1e-4);
      EXPECT_LT(error_against(leaves.keys.grad(), exact_leaves.keys.grad()), 1e-4);
      EXPECT_LT(error_against(leaves.values.grad(), exact_leaves.values.grad()), 1e-4);
    }
  }
}

TEST(AdaptiveAttention, RoundsHalfPrecisionLittle) {
  for (const auto type : {torch::kBFloat16, torch::kFloat16}) {
    const auto all = tokens(70, 300, 64, 64).to(type);
    const auto mixed = attention(all);
    EXPECT_EQ(mixed.scalar_type(), type);
    EXPECT_LT(error_against(mixed, exact(all)), 0.03);
    const auto leaves = all.leaves();
    attention(leaves).square().sum().backward();
    const auto exact_leaves = all.to(torch::kFloat64).leaves();
    attention(exact_leaves).square().sum().backward();
    for (const auto& [one, other] : {std::pair(leaves.queries, exact_leaves.queries),
                                     std::pair(leaves.keys, exact_leaves.keys),
                                     std::pair(leaves.values, exact_leaves.values)}) {
      EXPECT_EQ(one.grad().scalar_type(), type);
      const double size = other.grad().abs().max().item<double>();
      EXPECT_LT(error_against(one.grad(), other.grad()), 0.02 * size);
    }
  }
}

TEST(AdaptiveAttention, TakesTensorsOfAnyStride) {
  const auto all = tokens(9, 30, 16, 16).to(torch::kFloat32);
  const auto turned = [](const torch::Tensor& tensor) {
    return tensor.transpose(1, 2).contiguous().transpose(1, 2);
  };
  EXPECT_TRUE(adaptive_attention(turned(all.queries), turned(all.keys), turned(all.values))
                  .equal(attention(all)));
}

TEST(AdaptiveAttention, HasTheSameBitsOnAnyNumberOfThreads) {
  const auto all = tokens(70, 300, 64, 64).to(torch::kFloat32);
  const auto expected = attention(all);
  const ThreadCount one(1);
  EXPECT_TRUE(attention(all).equal(expected));
}

TEST(AdaptiveAttention, IsTheSameWithReferenceOps) {
  const auto all = tokens(9, 30, 16, 16).to(torch::kFloat32);
  const auto expected = attention(all, {.is_causal = true});
  const ReferenceOpsScope reference(true);
  expect_close(attention(all, {.is_causal = true}), expected, 1e-5);
}

TEST(AdaptiveAttention, OfNoQueriesIsNothing) {
  const auto all = tokens(0, 30, 16, 16).to(torch::kFloat32);
  EXPECT_EQ(attention(all).sizes(), (torch::IntArrayRef{2, 3, 0, 16}));
}

TEST(AdaptiveAttention, RejectsWhatDoesNotFit) {
  const auto all = tokens(9, 30, 16, 16);
  const auto refusal = [&](const AdaptiveAttentionOptions& options) {
    return error_of([&] { attention(all, options); });
  };
  EXPECT_EQ(
      error_of([&] { adaptive_attention(all.queries, all.keys.to(torch::kFloat32), all.values); }),
      "adaptive_attention: queries, keys and values must be of one floating type, are Double, "
      "Float and Double");
  EXPECT_EQ(
      error_of([&] { adaptive_attention(all.queries[0], all.keys, all.values); }),
      "adaptive_attention: needs queries, keys and values [samples, heads, tokens, width], got "
      "3, 4 and 4 dimensions");
  EXPECT_EQ(
      error_of([&] { adaptive_attention(all.queries, all.keys, all.queries); }),
      "adaptive_attention: sizes of queries, keys and values must fit, are [2, 3, 9, 16], [2, "
      "3, 30, 16] and [2, 3, 9, 16]");
  EXPECT_EQ(refusal({.scale = -1}),
            "adaptive_attention: scale must be a finite number above 0, or 0 for one over the root "
            "of the width, got -1");
  EXPECT_EQ(refusal({.softmax = {.temperature = -1}}),
            "adaptive_attention: temperature must be a finite number above 0, got -1");
  EXPECT_EQ(
      refusal({.mask = torch::ones({9, 30})}),
      "adaptive_attention: the mask must be boolean, true where a query sees a key, of at most "
      "4 dimensions");
  EXPECT_EQ(
      refusal({.mask = torch::ones({9, 29}, torch::kBool)}),
      "adaptive_attention: the mask must have the sizes [2, 3, 9, 30] of the logits or expand "
      "to them, has [9, 29]");
  const auto none = tokens(9, 0, 16, 16);
  EXPECT_EQ(
      error_of([&] { attention(none); }),
      "adaptive_attention: needs at least one key, and widths above 0, got keys [2, 3, 0, 16] "
      "and values [2, 3, 0, 16]");
}

}  // namespace kelvin::adaptive_attention_test
