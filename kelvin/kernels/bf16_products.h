#pragma once

#include "kelvin/kernels/bf16_vectors.h"

// Products of matrices of bfloat16 that are summed in float32, in blocks that stay in registers.

#if defined(__x86_64__)

namespace kelvin {

// The sum over terms of left[row, term] * right[term, vector], where a term is two products of
// neighbours: pairs of bfloat16 are what these processors multiply.  Steps are of pairs, those of
// results of floats.
struct Bf16Product {
  const uint32_t* left = nullptr;
  int64_t row_step = 0;
  int64_t term_step = 0;
  const uint32_t* right = nullptr;
  int64_t vector_step = 0;  // from one term to the next there are sixteen
  int64_t terms = 0;
  float* results = nullptr;
  int64_t result_step = 0;
};

// Results in registers.
template <int kRows, int kVectors>
KELVIN_BF16_INLINE void add_products(const Bf16Product& p, __m512 (&sums)[kRows][kVectors]) {
  const auto* left = p.left;
  const auto* right = p.right;
  for (int64_t term = 0; term < p.terms; ++term, left += p.term_step, right += kBf16Lanes) {
    __m512bh factors[kVectors];
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      factors[i] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(right + i * p.vector_step));
    }
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) {
      const auto pair = reinterpret_cast<__m512bh>(
          _mm512_set1_epi32(static_cast<int32_t>(left[row * p.row_step])));
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) {
        sums[row][i] = _mm512_dpbf16_ps(sums[row][i], factors[i], pair);
      }
    }
  }
}

// What becomes of results that are there already, and whether these are wanted soon: if not, they
// go past the caches.
enum class Bf16Results { replaced, added, streamed };

// Results in memory; streamed ones at multiples of 64 bytes.
template <int kRows, int kVectors, Bf16Results kResults>
KELVIN_BF16_INLINE void bf16_product(const Bf16Product& p) {
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      const auto* from = p.results + row * p.result_step + i * kBf16Lanes;
      sums[row][i] = kResults == Bf16Results::added ? _mm512_loadu_ps(from) : _mm512_setzero_ps();
    }
  }
  add_products<kRows, kVectors>(p, sums);
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      auto* to = p.results + row * p.result_step + i * kBf16Lanes;
      if constexpr (kResults == Bf16Results::streamed) {
        _mm512_stream_ps(to, sums[row][i]);
      } else {
        _mm512_storeu_ps(to, sums[row][i]);
      }
    }
  }
}

// All of so many rows and vectors of sixteen columns, wherever `sink` has them: sums begin with
// sink.start(column) and end in sink.put(row, column, sum).
template <int kVectors, class Sink>
KELVIN_BF16 void multiply_columns(const Bf16Product& p, int64_t begin, int64_t end, int64_t column,
                                  const Sink& sink) {
  const auto block = [&]<int kRows>(int64_t row) KELVIN_BF16 __attribute__((always_inline)) {
    __m512 sums[kRows][kVectors];
#pragma GCC unroll 2
    for (int i = 0; i < kVectors; ++i) {
      const auto start = sink.start(column + i * kBf16Lanes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) sums[r][i] = start;
    }
    add_products<kRows, kVectors>({.left = p.left + row * p.row_step,
                                   .row_step = p.row_step,
                                   .term_step = p.term_step,
                                   .right = p.right + column / kBf16Lanes * p.vector_step,
                                   .vector_step = p.vector_step,
                                   .terms = p.terms},
                                  sums);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) sink.put(row + r, column + i * kBf16Lanes, sums[r][i]);
    }
  };
  auto row = begin;
  for (; row + 12 <= end; row += 12) block.template operator()<12>(row);
  for (; row + 4 <= end; row += 4) block.template operator()<4>(row);
  for (; row < end; ++row) block.template operator()<1>(row);
}

template <class Sink>
void multiply_rows(const Bf16Product& p, int64_t begin, int64_t end, int64_t columns,
                   const Sink& sink) {
  int64_t column = 0;
  for (; column + 2 * kBf16Lanes <= columns; column += 2 * kBf16Lanes) {
    multiply_columns<2>(p, begin, end, column, sink);
  }
  if (column < columns) multiply_columns<1>(p, begin, end, column, sink);
}

// Results rounded to bfloat16, to which a bias is added unless it is null.
struct Bf16Sink {
  Bf16* results = nullptr;
  int64_t step = 0;
  const float* bias = nullptr;

  KELVIN_BF16_INLINE __m512 start(int64_t column) const {
    return bias != nullptr ? _mm512_loadu_ps(bias + column) : _mm512_setzero_ps();
  }
  KELVIN_BF16_INLINE void put(int64_t row, int64_t column, __m512 sum) const {
    store(results + row * step + column, sum);
  }
};

// Results as they are.
struct FloatSink {
  float* results = nullptr;
  int64_t step = 0;

  KELVIN_BF16_INLINE __m512 start(int64_t) const { return _mm512_setzero_ps(); }
  KELVIN_BF16_INLINE void put(int64_t row, int64_t column, __m512 sum) const {
    store(results + row * step + column, sum);
  }
};

inline const uint32_t* pairs_of(const Bf16* numbers) {
  return reinterpret_cast<const uint32_t*>(numbers);
}

// Transposes 16 x 16 pairs.
KELVIN_BF16_INLINE void transpose(__m512i (&rows)[kBf16Lanes]) {
  __m512i t[kBf16Lanes];
#pragma GCC unroll 8
  for (int i = 0; i < kBf16Lanes; i += 2) {
    t[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  __m512i u[kBf16Lanes];
#pragma GCC unroll 4
  for (int i = 0; i < kBf16Lanes; i += 4) {
    u[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    u[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    u[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    u[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  constexpr int kEven = 0x88;
  constexpr int kOdd = 0xdd;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const auto a = _mm512_shuffle_i32x4(u[i], u[i + 4], kEven);
    const auto b = _mm512_shuffle_i32x4(u[i], u[i + 4], kOdd);
    const auto c = _mm512_shuffle_i32x4(u[i + 8], u[i + 12], kEven);
    const auto d = _mm512_shuffle_i32x4(u[i + 8], u[i + 12], kOdd);
    rows[i] = _mm512_shuffle_i32x4(a, c, kEven);
    rows[i + 4] = _mm512_shuffle_i32x4(b, d, kEven);
    rows[i + 8] = _mm512_shuffle_i32x4(a, c, kOdd);
    rows[i + 12] = _mm512_shuffle_i32x4(b, d, kOdd);
  }
}

}  // namespace kelvin

#endif
