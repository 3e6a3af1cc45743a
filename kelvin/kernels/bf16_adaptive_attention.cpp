#include "kelvin/kernels/bf16_adaptive_attention.h"

#include <algorithm>

#include "kelvin/kernels/aligned_vector.h"
#include "kelvin/kernels/attention_strip.h"
#include "kelvin/kernels/bf16_panels.h"

namespace kelvin {

#if defined(__x86_64__)

namespace {

// Rows that products of bfloat16 have at once.
constexpr int64_t kQueryUnit = 12;

QueryBlocks blocks_of(const AdaptiveAttention<Bf16>& attention) {
  return QueryBlocks(attention, kQueryUnit, kBf16Lanes);
}

// Numbers of the turned keys, in pairs.
int64_t turned_pairs(const AdaptiveAttention<Bf16>& attention) {
  return rounded_up(attention.key_count, kBf16Lanes) * attention.width / 2;
}

void mix_block(const AdaptiveAttention<Bf16>& a, const QueryBlock& block, const uint32_t* packed,
               Bf16* mixed) {
  const auto columns = block.columns;
  auto* logits = thread_scratch<float, 2>(block.count * columns);
  auto* weights = thread_scratch<Bf16, 2>(block.count * columns);
  const auto place = block.head * a.query_count + block.first;
  multiply_rows({.left = pairs_of(a.queries + place * a.width),
                 .row_step = a.width / 2,
                 .term_step = 1,
                 .right = packed,
                 .vector_step = a.width / 2 * kBf16Lanes,
                 .terms = a.width / 2},
                0, block.count, columns, FloatSink{.results = logits, .step = columns});
  mask_strip(a.mask, a.heads, block, logits);
  adaptive_softmax_rows<float>({.logits = logits,
                                .rows = block.count,
                                .columns = columns,
                                .inverse_temperature = a.factor,
                                .curve = a.curve,
                                .result = logits},
                               0, block.count, InstructionSet::avx512);
  round_row(logits, block.count * columns, weights);
  multiply_rows({.left = pairs_of(weights),
                 .row_step = columns / 2,
                 .term_step = 1,
                 .right = packed + turned_pairs(a),
                 .vector_step = rounded_up(a.key_count, kBf16Lanes) / 2 * kBf16Lanes,
                 .terms = columns / 2},
                0, block.count, a.value_width,
                Bf16Sink{.results = mixed + place * a.value_width, .step = a.value_width});
}

}  // namespace

bool suits_bf16_adaptive_attention(const AdaptiveAttention<Bf16>& attention) {
  constexpr int64_t kUnit = 2 * kBf16Lanes;
  return has_bf16_products() && widest_instruction_set() == InstructionSet::avx512 &&
         attention.width % kUnit == 0 && attention.value_width % kUnit == 0;
}

int64_t bf16_packed_head_size(const AdaptiveAttention<Bf16>& attention) {
  return rounded_up(attention.key_count, kBf16Lanes) * (attention.width + attention.value_width) /
         2;
}

void bf16_pack_head(const AdaptiveAttention<Bf16>& attention, int64_t head, uint32_t* packed) {
  const auto& a = attention;
  pack_transposed({.data = a.keys + head * a.key_count * a.width, .step = a.width}, a.key_count,
                  a.width, packed);
  pack_pairs({.data = a.values + head * a.key_count * a.value_width, .step = a.value_width},
             a.key_count, a.value_width, rounded_up(a.key_count, kBf16Lanes) / 2,
             packed + turned_pairs(a));
}

int64_t bf16_blocks_of_head(const AdaptiveAttention<Bf16>& attention) {
  return blocks_of(attention).of_head();
}

void bf16_adaptive_attention(const AdaptiveAttention<Bf16>& attention, const uint32_t* packed,
                             int64_t begin, int64_t end, Bf16* mixed) {
  const auto blocks = blocks_of(attention);
  const auto size = bf16_packed_head_size(attention);
  for (auto i = begin; i < end; ++i) {
    const auto block = blocks.at(i);
    mix_block(attention, block, packed + block.head * size, mixed);
  }
}

#else

bool suits_bf16_adaptive_attention(const AdaptiveAttention<Bf16>&) { return false; }
int64_t bf16_packed_head_size(const AdaptiveAttention<Bf16>&) { missing_kernel(); }
void bf16_pack_head(const AdaptiveAttention<Bf16>&, int64_t, uint32_t*) { missing_kernel(); }
int64_t bf16_blocks_of_head(const AdaptiveAttention<Bf16>&) { missing_kernel(); }
void bf16_adaptive_attention(const AdaptiveAttention<Bf16>&, const uint32_t*, int64_t, int64_t,
                             Bf16*) {
  missing_kernel();
}

#endif

}  // namespace kelvin
