#pragma once

#include <torch/types.h>

namespace kelvin {

// Whether bfloat16_attention computes this: bfloat16 without gaps, at most 2048 tokens, heads as
// wide as a multiple of 32, on a CPU that multiplies bfloat16.
bool suits_bfloat16_attention(const torch::Tensor& qkv, int64_t heads);

// softmax(factor q k^T) v of `qkv` [samples, tokens, 3 * heads * width], heads side by side:
// [samples, tokens, heads * width].  Everything but products is float32, and shares are rounded
// only to be multiplied.
torch::Tensor bfloat16_attention(const torch::Tensor& qkv, int64_t heads, double factor);

}  // namespace kelvin
