#pragma once

#include <cstdint>

#include "kelvin/kernels/bf16.h"

namespace kelvin {

// Self-attention with products of bfloat16 and everything between them in float32, one head at a
// time: attention weights of a few hundred tokens never leave the caches, and are computed again
// for the gradient.

constexpr int64_t kBf16AttentionUnit = 32;  // a head's width must be a multiple of it
// There must be no more tokens, whose squares a core keeps: 24 MiB of them, 48 for the gradient.
constexpr int64_t kBf16AttentionTokens = 2048;

// Whether this processor has products of bfloat16 in the vectors that the kernels are written for.
bool has_bf16_attention();

struct Bf16AttentionShape {
  int64_t samples = 0;
  int64_t tokens = 0;
  int64_t heads = 0;
  int64_t width = 0;  // of a head
  float factor = 1;   // of the logits
};

// Heads [begin, end) of all samples, counted over samples and heads: softmax(factor q k^T) v.
//   qkv [samples, tokens, 3, heads, width], mixed [samples, tokens, heads, width]
void bf16_attention(const Bf16AttentionShape& shape, const Bf16* qkv, int64_t begin, int64_t end,
                    Bf16* mixed);

// The gradient of qkv from that of mixed.
void bf16_attention_back(const Bf16AttentionShape& shape, const Bf16* qkv, const Bf16* gradients,
                         int64_t begin, int64_t end, Bf16* result);

}  // namespace kelvin
