#pragma once

#include <cstdint>

#include "kelvin/kernels/adaptive_attention.h"

namespace kelvin {

// Adaptive attention with products of bfloat16 and everything between them in float32; functions
// are those of adaptive_attention.h.

// Whether this processor has products of bfloat16 in the vectors that the kernel is written for,
// and widths are multiples of 32.
bool suits_bf16_adaptive_attention(const AdaptiveAttention<Bf16>& attention);

// So many pairs of numbers.
int64_t bf16_packed_head_size(const AdaptiveAttention<Bf16>& attention);

void bf16_pack_head(const AdaptiveAttention<Bf16>& attention, int64_t head, uint32_t* packed);

int64_t bf16_blocks_of_head(const AdaptiveAttention<Bf16>& attention);

void bf16_adaptive_attention(const AdaptiveAttention<Bf16>& attention, const uint32_t* packed,
                             int64_t begin, int64_t end, Bf16* mixed);

}  // namespace kelvin
