#include "kelvin/kernels/adaptive_attention.h"

#include <algorithm>

#include "kelvin/kernels/aligned_vector.h"
#include "kelvin/kernels/attention_strip.h"
#include "kelvin/kernels/float_products.h"

namespace kelvin {
namespace {

constexpr int64_t kQueryUnit = 8;      // rows that products of float32 have at once
constexpr int64_t kTermsAtOnce = 256;  // keys whose values stay in a cache

// Sizes of what a head is computed with.
template <int kLanes>
struct HeadSizes {
  template <class Number>
  explicit HeadSizes(const AdaptiveAttention<Number>& attention)
      : keys(rounded_up(attention.key_count, kLanes)),
        width(rounded_up(attention.width, kLanes)),
        value_width(rounded_up(attention.value_width, kLanes)),
        turned(keys * attention.width) {}

  int64_t packed() const { return turned + keys * value_width; }

  int64_t keys;
  int64_t width;
  int64_t value_width;
  int64_t turned;  // numbers of the turned keys
};

template <int kLanes, class Number>
class AttentionWork {
 public:
  explicit AttentionWork(const AdaptiveAttention<Number>& attention, InstructionSet set)
      : attention_(attention),
        sizes_(attention),
        set_(set),
        blocks_(attention, kQueryUnit, kLanes),
        block_(blocks_.queries()),
        queries_(thread_scratch<float, 1>(block_ * sizes_.width)),
        logits_(thread_scratch<float, 2>(block_ * sizes_.keys)) {}

  const QueryBlocks& blocks() const { return blocks_; }

  KELVIN_ROW_INLINE void mix(const QueryBlock& block, const float* packed, Number* mixed) {
    find_logits(block, packed);
    auto* weights = logits_;
    find_weights(block, weights, {});
    auto* sums = thread_scratch<float, 3>(block_ * sizes_.value_width);
    multiply_keys(block, weights, packed + sizes_.turned, sizes_.value_width, sums);
    const auto place = block.head * attention_.query_count + block.first;
    write_rows(sums, sizes_.value_width, block.count, attention_.value_width,
               mixed + place * attention_.value_width);
  }

  KELVIN_ROW_INLINE void differentiate_head(const AdaptiveAttentionGradient<Number>& gradient,
                                            int64_t head) {
    const auto& a = attention_;
    auto* turned_keys = thread_scratch<float, 4>(sizes_.turned);
    auto* turned_values = thread_scratch<float, 5>(sizes_.keys * a.value_width);
    auto* keys = thread_scratch<float, 6>(sizes_.keys * sizes_.width);
    auto* key_sums = thread_scratch<float, 7>(sizes_.keys * sizes_.width);
    auto* value_sums = thread_scratch<float, 8>(sizes_.keys * sizes_.value_width);
    const auto* from_keys = a.keys + head * a.key_count * a.width;
    pack_turned<kLanes>(from_keys, a.key_count, a.width, turned_keys);
    pack_rows(from_keys, a.key_count, a.width, sizes_.keys, sizes_.width, keys);
    pack_turned<kLanes>(a.values + head * a.key_count * a.value_width, a.key_count, a.value_width,
                        turned_values);
    std::fill_n(key_sums, sizes_.keys * sizes_.width, 0.0F);
    std::fill_n(value_sums, sizes_.keys * sizes_.value_width, 0.0F);
    for (int64_t index = 0; index < blocks_.of_head(); ++index) {
      const auto block = blocks_.at(head * blocks_.of_head() + index);
      differentiate(gradient, block, {turned_keys, turned_values, keys, key_sums, value_sums});
    }
    write_rows(key_sums, sizes_.width, a.key_count, a.width,
               gradient.keys + head * a.key_count * a.width);
    write_rows(value_sums, sizes_.value_width, a.key_count, a.value_width,
               gradient.values + head * a.key_count * a.value_width);
  }

 private:
  // What the gradient of a head works with.
  struct HeadGradient {
    const float* turned_keys;
    const float* turned_values;
    const float* keys;
    float* key_sums;
    float* value_sums;
  };

  KELVIN_ROW_INLINE void differentiate(const AdaptiveAttentionGradient<Number>& gradient,
                                       const QueryBlock& block, const HeadGradient& head) {
    const auto& a = attention_;
    const auto place = block.head * a.query_count + block.first;
    auto* incoming = thread_scratch<float, 9>(block_ * sizes_.value_width);
    auto* weights = thread_scratch<float, 10>(block_ * sizes_.keys);
    auto* slopes = thread_scratch<float, 11>(block_ * sizes_.keys);
    auto* facts = thread_scratch<float, 12>(6 * block_);
    const AdaptiveRowNumbers numbers{.beta = facts,
                                     .top_weight = facts + block_,
                                     .largest = facts + 2 * block_,
                                     .sum = facts + 3 * block_,
                                     .mean = facts + 4 * block_,
                                     .slope = facts + 5 * block_};
    find_logits(block, head.turned_keys);
    find_weights(block, weights, numbers);
    pack_rows(gradient.mixed + place * a.value_width, block.count, a.value_width, block.count,
              sizes_.value_width, incoming);
    multiply_turned(block, incoming, sizes_.value_width, head.turned_values, a.value_width, slopes);
    add_to_keys(block, weights, incoming, sizes_.value_width, head.value_sums);
    // In place of the weights, the gradient of products of queries and keys.
    adaptive_softmax_gradient<float>({.logits = logits_,
                                      .gradient = slopes,
                                      .rows = block.count,
                                      .columns = block.columns,
                                      .inverse_temperature = a.factor,
                                      .beta = numbers.beta,
                                      .top_weight = numbers.top_weight,
                                      .largest = numbers.largest,
                                      .sum = numbers.sum,
                                      .mean = numbers.mean,
                                      .slope = gradient.detach_beta ? nullptr : numbers.slope,
                                      .result = weights},
                                     0, block.count, set_);
    add_to_keys(block, weights, queries_, sizes_.width, head.key_sums);
    auto* sums = thread_scratch<float, 3>(block_ * sizes_.width);
    multiply_keys(block, weights, head.keys, sizes_.width, sums);
    write_rows(sums, sizes_.width, block.count, a.width, gradient.queries + place * a.width);
  }

  // Rows of the block times a turned matrix, to a strip.
  KELVIN_ROW_INLINE void multiply_turned(const QueryBlock& block, const float* rows,
                                         int64_t row_step, const float* turned, int64_t terms,
                                         float* strip) const {
    multiply_floats<kLanes, FloatResults::replaced>({.left = rows,
                                                     .row_step = row_step,
                                                     .term_step = 1,
                                                     .right = turned,
                                                     .right_step = kLanes,
                                                     .vector_step = terms * kLanes,
                                                     .terms = terms,
                                                     .results = strip,
                                                     .result_step = block.columns},
                                                    block.count, block.columns / kLanes);
  }

  // A strip times rows of keys or values, to rows of the block.
  KELVIN_ROW_INLINE void multiply_keys(const QueryBlock& block, const float* strip,
                                       const float* rows, int64_t width, float* sums) const {
    std::fill_n(sums, block.count * width, 0.0F);
    for (int64_t first = 0; first < block.columns; first += kTermsAtOnce) {
      multiply_floats<kLanes, FloatResults::added>(
          {.left = strip + first,
           .row_step = block.columns,
           .term_step = 1,
           .right = rows + first * width,
           .right_step = width,
           .vector_step = kLanes,
           .terms = std::min(kTermsAtOnce, block.columns - first),
           .results = sums,
           .result_step = width},
          block.count, width / kLanes);
    }
  }

  // Adds a turned strip times rows of the block to sums of each key.
  KELVIN_ROW_INLINE void add_to_keys(const QueryBlock& block, const float* strip, const float* rows,
                                     int64_t width, float* sums) const {
    multiply_floats<kLanes, FloatResults::added>({.left = strip,
                                                  .row_step = 1,
                                                  .term_step = block.columns,
                                                  .right = rows,
                                                  .right_step = width,
                                                  .vector_step = kLanes,
                                                  .terms = block.count,
                                                  .results = sums,
                                                  .result_step = width},
                                                 block.columns, width / kLanes);
  }

  KELVIN_ROW_INLINE void find_logits(const QueryBlock& block, const float* turned_keys) {
    const auto& a = attention_;
    const auto place = block.head * a.query_count + block.first;
    pack_rows(a.queries + place * a.width, block.count, a.width, block.count, sizes_.width,
              queries_);
    multiply_turned(block, queries_, sizes_.width, turned_keys, a.width, logits_);
    mask_strip(a.mask, a.heads, block, logits_);
  }

  KELVIN_ROW_INLINE void find_weights(const QueryBlock& block, float* weights,
                                      const AdaptiveRowNumbers& numbers) const {
    adaptive_softmax_rows<float>({.logits = logits_,
                                  .rows = block.count,
                                  .columns = block.columns,
                                  .inverse_temperature = attention_.factor,
                                  .curve = attention_.curve,
                                  .result = weights,
                                  .numbers = numbers},
                                 0, block.count, set_);
  }

  static void write_rows(const float* from, int64_t step, int64_t rows, int64_t width, Number* to) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < width; ++i) put(from[row * step + i], to[row * width + i]);
    }
  }

  const AdaptiveAttention<Number>& attention_;
  const HeadSizes<kLanes> sizes_;
  const InstructionSet set_;
  const QueryBlocks blocks_;
  const int64_t block_;   // queries of one
  float* const queries_;  // [block, width]
  float* const logits_;   // [block, columns]
};

template <int kLanes, class Number>
KELVIN_ROW_INLINE void mix_blocks(const AdaptiveAttention<Number>& attention, const float* packed,
                                  int64_t begin, int64_t end, Number* mixed, InstructionSet set) {
  AttentionWork<kLanes, Number> work(attention, set);
  const auto packed_size = HeadSizes<kLanes>(attention).packed();
  for (auto i = begin; i < end; ++i) {
    const auto block = work.blocks().at(i);
    work.mix(block, packed + block.head * packed_size, mixed);
  }
}

template <int kLanes, class Number>
KELVIN_ROW_INLINE void differentiate_heads(const AdaptiveAttention<Number>& attention,
                                           const AdaptiveAttentionGradient<Number>& gradient,
                                           int64_t begin, int64_t end, InstructionSet set) {
  AttentionWork<kLanes, Number> work(attention, set);
  for (auto head = begin; head < end; ++head) work.differentiate_head(gradient, head);
}

#if defined(__x86_64__)
template <class Number>
KELVIN_ROW_AVX512 void mix_with_avx512(const AdaptiveAttention<Number>& attention,
                                       const float* packed, int64_t begin, int64_t end,
                                       Number* mixed) {
  mix_blocks<16>(attention, packed, begin, end, mixed, InstructionSet::avx512);
}
template <class Number>
KELVIN_ROW_AVX2 void mix_with_avx2(const AdaptiveAttention<Number>& attention, const float* packed,
                                   int64_t begin, int64_t end, Number* mixed) {
  mix_blocks<8>(attention, packed, begin, end, mixed, InstructionSet::avx2);
}
template <class Number>
KELVIN_ROW_AVX512 void differentiate_with_avx512(const AdaptiveAttention<Number>& attention,
                                                 const AdaptiveAttentionGradient<Number>& gradient,
                                                 int64_t begin, int64_t end) {
  differentiate_heads<16>(attention, gradient, begin, end, InstructionSet::avx512);
}
template <class Number>
KELVIN_ROW_AVX2 void differentiate_with_avx2(const AdaptiveAttention<Number>& attention,
                                             const AdaptiveAttentionGradient<Number>& gradient,
                                             int64_t begin, int64_t end) {
  differentiate_heads<8>(attention, gradient, begin, end, InstructionSet::avx2);
}
#endif

// Calls work.operator()<lanes>() with those of the instruction set.
template <class Work>
auto with_lanes(InstructionSet set, const Work& work) {
  if (set == InstructionSet::avx512) return work.template operator()<16>();
  if (set == InstructionSet::avx2) return work.template operator()<8>();
  return work.template operator()<4>();
}

}  // namespace

template <class Number>
int64_t packed_head_size(const AdaptiveAttention<Number>& attention, InstructionSet set) {
  return with_lanes(set, [&]<int kLanes>() { return HeadSizes<kLanes>(attention).packed(); });
}

template <class Number>
void pack_head(const AdaptiveAttention<Number>& attention, int64_t head, float* packed,
               InstructionSet set) {
  const auto& a = attention;
  with_lanes(set, [&]<int kLanes>() {
    const HeadSizes<kLanes> sizes(a);
    pack_turned<kLanes>(a.keys + head * a.key_count * a.width, a.key_count, a.width, packed);
    pack_rows(a.values + head * a.key_count * a.value_width, a.key_count, a.value_width, sizes.keys,
              sizes.value_width, packed + sizes.turned);
  });
}

template <class Number>
int64_t blocks_of_head(const AdaptiveAttention<Number>& attention) {
  return QueryBlocks(attention, kQueryUnit, kQueryUnit).of_head();
}

template <class Number>
void adaptive_attention(const AdaptiveAttention<Number>& attention, const float* packed,
                        int64_t begin, int64_t end, Number* mixed, InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) return mix_with_avx512(attention, packed, begin, end, mixed);
  if (set == InstructionSet::avx2) return mix_with_avx2(attention, packed, begin, end, mixed);
#endif
  mix_blocks<4>(attention, packed, begin, end, mixed, set);
}

template <class Number>
void adaptive_attention_gradient(const AdaptiveAttention<Number>& attention,
                                 const AdaptiveAttentionGradient<Number>& gradient, int64_t begin,
                                 int64_t end, InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) {
    return differentiate_with_avx512(attention, gradient, begin, end);
  }
  if (set == InstructionSet::avx2) return differentiate_with_avx2(attention, gradient, begin, end);
#endif
  differentiate_heads<4>(attention, gradient, begin, end, set);
}

template int64_t packed_head_size(const AdaptiveAttention<float>&, InstructionSet);
template void pack_head(const AdaptiveAttention<float>&, int64_t, float*, InstructionSet);
template int64_t blocks_of_head(const AdaptiveAttention<float>&);
template void adaptive_attention(const AdaptiveAttention<float>&, const float*, int64_t, int64_t,
                                 float*, InstructionSet);
template void adaptive_attention_gradient(const AdaptiveAttention<float>&,
                                          const AdaptiveAttentionGradient<float>&, int64_t, int64_t,
                                          InstructionSet);
template int64_t packed_head_size(const AdaptiveAttention<Bf16>&, InstructionSet);
template void pack_head(const AdaptiveAttention<Bf16>&, int64_t, float*, InstructionSet);
template int64_t blocks_of_head(const AdaptiveAttention<Bf16>&);
template void adaptive_attention(const AdaptiveAttention<Bf16>&, const float*, int64_t, int64_t,
                                 Bf16*, InstructionSet);
template void adaptive_attention_gradient(const AdaptiveAttention<Bf16>&,
                                          const AdaptiveAttentionGradient<Bf16>&, int64_t, int64_t,
                                          InstructionSet);

}  // namespace kelvin
