#include "kelvin/kernels/bf16_adaptive_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/adaptive_rows.h"

namespace kelvin::bf16_adaptive_attention_test {

std::vector<Bf16> wave(int64_t count, double step) {
  std::vector<Bf16> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) {
    put(static_cast<float>(2 * std::sin(step * static_cast<double>(i + 1))), numbers[i]);
  }
  return numbers;
}

struct Problem {
  std::vector<Bf16> queries, keys, values;
  std::vector<uint8_t> seen;
  AdaptiveAttention<Bf16> attention;

  Problem(int64_t query_count, int64_t key_count, bool is_causal)
      : queries(wave(kHeads * query_count * 64, 0.7)),
        keys(wave(kHeads * key_count * 64, 0.31)),
        values(wave(kHeads * key_count * 32, 1.3)),
        seen(static_cast<size_t>(query_count * key_count)) {
    for (size_t i = 0; i < seen.size(); ++i) seen[i] = i % 5 != 2;
    attention = {.queries = queries.data(),
                 .keys = keys.data(),
                 .values = values.data(),
                 .samples = 1,
                 .heads = kHeads,
                 .query_count = query_count,
                 .key_count = key_count,
                 .width = 64,
                 .value_width = 32,
                 .factor = 0.05,
                 .curve = published_curve(),
                 .mask = {.bytes = seen.data(), .query_step = key_count, .is_causal = is_causal}};
  }
  size_t results() const { return static_cast<size_t>(kHeads * attention.query_count * 32); }

  static constexpr int64_t kHeads = 2;
};

// That with products of float32 is compared with double precision by
// tests/ops/adaptive_attention_test.cpp.
TEST(Bf16AdaptiveAttention, IsThatOfFloatsButForRounding) {
  for (const int64_t queries : {1, 13, 61}) {
    for (const int64_t keys : {1, 40, 700}) {
      for (const bool is_causal : {false, true}) {
        const Problem problem(queries, keys, is_causal);
        const auto& attention = problem.attention;
        if (!suits_bf16_adaptive_attention(attention)) GTEST_SKIP() << "no products of bfloat16";
        const auto set = widest_instruction_set();
        std::vector<float> floats(static_cast<size_t>(2 * packed_head_size(attention, set)));
        std::vector<uint32_t> pairs(static_cast<size_t>(2 * bf16_packed_head_size(attention)));
        for (int64_t head = 0; head < 2; ++head) {
          pack_head(attention, head, floats.data() + head * packed_head_size(attention, set), set);
          bf16_pack_head(attention, head, pairs.data() + head * bf16_packed_head_size(attention));
        }
        std::vector<Bf16> expected(problem.results());
        std::vector<Bf16> result(problem.results());
        adaptive_attention(attention, floats.data(), 0, 2 * blocks_of_head(attention),
                           expected.data(), set);
        bf16_adaptive_attention(attention, pairs.data(), 0, 2 * bf16_blocks_of_head(attention),
                                result.data());
        for (size_t i = 0; i < result.size(); ++i) {
          ASSERT_NEAR(number(result[i]), number(expected[i]), 0.02) << i;
        }
      }
    }
  }
}

TEST(Bf16AdaptiveAttention, NeedsWidthsOfWholeVectors) {
  auto attention = Problem(1, 1, false).attention;
  attention.width = 48;
  EXPECT_FALSE(suits_bf16_adaptive_attention(attention));
}

}  // namespace kelvin::bf16_adaptive_attention_test
