#include "kelvin/kernels/adaptive_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/adaptive_rows.h"

// tests/ops/adaptive_attention_test.cpp compares the widest instruction set with double precision.

namespace kelvin::adaptive_attention_kernel_test {

std::vector<float> wave(int64_t count, double step) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(2 * std::sin(step * static_cast<double>(i + 1)));
  }
  return numbers;
}

struct Result {
  std::vector<float> mixed, queries, keys, values;
};

Result computed(int64_t queries, int64_t keys, int64_t width, int64_t value_width, bool is_causal,
                InstructionSet set) {
  constexpr int64_t kHeads = 2;
  const auto q = wave(kHeads * queries * width, 0.7);
  const auto k = wave(kHeads * keys * width, 0.31);
  const auto v = wave(kHeads * keys * value_width, 1.3);
  const auto incoming = wave(kHeads * queries * value_width, 0.9);
  const AdaptiveAttention<float> attention{.queries = q.data(),
                                           .keys = k.data(),
                                           .values = v.data(),
                                           .samples = 1,
                                           .heads = kHeads,
                                           .query_count = queries,
                                           .key_count = keys,
                                           .width = width,
                                           .value_width = value_width,
                                           .factor = 0.2,
                                           .curve = published_curve(),
                                           .mask = {.is_causal = is_causal}};
  const auto size = packed_head_size(attention, set);
  std::vector<float> packed(static_cast<size_t>(kHeads * size));
  for (int64_t head = 0; head < kHeads; ++head) {
    pack_head(attention, head, packed.data() + head * size, set);
  }
  Result result{incoming, q, k, v};
  adaptive_attention(attention, packed.data(), 0, kHeads * blocks_of_head(attention),
                     result.mixed.data(), set);
  adaptive_attention_gradient(attention,
                              {.mixed = incoming.data(),
                               .queries = result.queries.data(),
                               .keys = result.keys.data(),
                               .values = result.values.data()},
                              0, kHeads, set);
  return result;
}

void expect_near(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 2e-4) << i;
}

TEST(AdaptiveAttentionKernel, IsTheSameWithAnyInstructions) {
  for (const bool is_causal : {false, true}) {
    for (const int64_t keys : {1, 5, 33, 300}) {
      const auto expected = computed(21, keys, 10, 7, is_causal, InstructionSet::generic);
      for (const auto set : {InstructionSet::avx2, InstructionSet::avx512}) {
        if (set > widest_instruction_set()) continue;
        const auto result = computed(21, keys, 10, 7, is_causal, set);
        expect_near(result.mixed, expected.mixed);
        expect_near(result.queries, expected.queries);
        expect_near(result.keys, expected.keys);
        expect_near(result.values, expected.values);
      }
    }
  }
}

// Of one key the weight is 1, so that its value comes out.
TEST(AdaptiveAttentionKernel, OfOneKeyIsItsValue) {
  const auto result = computed(3, 1, 4, 5, false, widest_instruction_set());
  const auto values = wave(2 * 5, 1.3);
  for (size_t head = 0; head < 2; ++head) {
    for (size_t i = 0; i < 15; ++i) {
      EXPECT_EQ(result.mixed[head * 15 + i], values[head * 5 + i % 5]);
    }
  }
}

}  // namespace kelvin::adaptive_attention_kernel_test
