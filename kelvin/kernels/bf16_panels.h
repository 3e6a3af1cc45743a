#pragma once

#include <cstdint>

#include "kelvin/kernels/bf16_products.h"

#if defined(__x86_64__)

namespace kelvin {

// Factors of attention's products of bfloat16, and what becomes of their results.

// A matrix of one head, [tokens, width], `step` numbers from one token to the next.
template <class Number>
struct HeadRows {
  Number* data = nullptr;
  int64_t step = 0;
};

// Rows of the head as right factors of products whose terms are its width: [tokens / 16, width / 2,
// 16] pairs; tokens beyond the last are zeros.
KELVIN_BF16 inline void pack_transposed(const HeadRows<const Bf16>& rows, int64_t tokens,
                                        int64_t width, uint32_t* to) {
  for (int64_t token = 0; token < tokens; token += kBf16Lanes) {
    for (int64_t place = 0; place < width; place += 2 * kBf16Lanes) {
      __m512i block[kBf16Lanes];
#pragma GCC unroll 16
      for (int64_t i = 0; i < kBf16Lanes; ++i) {
        block[i] = token + i < tokens
                       ? _mm512_loadu_si512(rows.data + (token + i) * rows.step + place)
                       : _mm512_setzero_si512();
      }
      transpose(block);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kBf16Lanes; ++i) {
        _mm512_storeu_si512(to + token * (width / 2) + (place / 2 + i) * kBf16Lanes, block[i]);
      }
    }
  }
}

// As right factors of products whose terms are its tokens: [width / 16, tokens / 2, 16] pairs, for
// so many pairs; tokens beyond the last are zeros.
KELVIN_BF16 inline void pack_pairs(const HeadRows<const Bf16>& rows, int64_t tokens, int64_t width,
                                   int64_t pairs, uint32_t* to) {
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const auto token = 2 * pair;
    for (int64_t place = 0; place < width; place += kBf16Lanes) {
      const auto* from = rows.data + token * rows.step + place;
      const auto first = token < tokens ? wide(from) : _mm512_setzero_ps();
      const auto second = token + 1 < tokens ? wide(from + rows.step) : _mm512_setzero_ps();
      store_pairs(reinterpret_cast<Bf16*>(to + place * pairs + pair * kBf16Lanes), first, second);
    }
  }
}

KELVIN_BF16 inline void round_row(const float* row, int64_t columns, Bf16* to) {
  for (int64_t i = 0; i < columns; i += kBf16Lanes) store(to + i, wide(row + i));
}

// Two rows, pairs of them next to each other.
KELVIN_BF16 inline void round_rows(const float* first, const float* second, int64_t columns,
                                   uint32_t* to) {
  for (int64_t i = 0; i < columns; i += kBf16Lanes) {
    store_pairs(reinterpret_cast<Bf16*>(to + i), wide(first + i), wide(second + i));
  }
}

}  // namespace kelvin

#endif
