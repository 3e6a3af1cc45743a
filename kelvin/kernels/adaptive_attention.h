#pragma once

#include <cstdint>

#include "kelvin/kernels/adaptive_softmax.h"

namespace kelvin {

// Attention whose weights are the adaptive softmax of its logits, without the matrix of weights in
// memory: logits of a few queries stay in the caches of a core, where they become weights and are
// multiplied with the values.  The gradient computes them again.

// Which keys a query looks at: where a byte is not 0, and if causal, up to the one of its own
// place.  Keys of a query lie side by side.
struct AttentionMask {
  const uint8_t* bytes = nullptr;  // null: all
  int64_t sample_step = 0;
  int64_t head_step = 0;
  int64_t query_step = 0;
  bool is_causal = false;
};

template <class Number>
struct AdaptiveAttention {
  const Number* queries = nullptr;  // [samples, heads, query_count, width]
  const Number* keys = nullptr;     // [samples, heads, key_count, width]
  const Number* values = nullptr;   // [samples, heads, key_count, value_width]
  int64_t samples = 0;
  int64_t heads = 0;
  int64_t query_count = 0;
  int64_t key_count = 0;
  int64_t width = 0;
  int64_t value_width = 0;
  double factor = 1;  // of products of queries and keys, in [1e-30, 1e30]
  AdaptiveCurve curve = {};
  AttentionMask mask = {};
};

// Heads are counted over samples.  What is computed from keys and values of a head, for all of its
// queries: so many floats.
template <class Number>
int64_t packed_head_size(const AdaptiveAttention<Number>& attention, InstructionSet set);

template <class Number>
void pack_head(const AdaptiveAttention<Number>& attention, int64_t head, float* packed,
               InstructionSet set);

// Queries are computed in blocks, which are counted over all heads.
template <class Number>
int64_t blocks_of_head(const AdaptiveAttention<Number>& attention);

// Blocks [begin, end) of `mixed` [samples, heads, query_count, value_width], with what pack_head
// made of all heads.  A query that sees no key gets zeros.
template <class Number>
void adaptive_attention(const AdaptiveAttention<Number>& attention, const float* packed,
                        int64_t begin, int64_t end, Number* mixed,
                        InstructionSet set = widest_instruction_set());

template <class Number>
struct AdaptiveAttentionGradient {
  const Number* mixed = nullptr;  // what comes in
  bool detach_beta = false;
  Number* queries = nullptr;
  Number* keys = nullptr;
  Number* values = nullptr;
};

// Of heads [begin, end).
template <class Number>
void adaptive_attention_gradient(const AdaptiveAttention<Number>& attention,
                                 const AdaptiveAttentionGradient<Number>& gradient, int64_t begin,
                                 int64_t end, InstructionSet set = widest_instruction_set());

}  // namespace kelvin
