#pragma once

// Vectors of sixteen numbers for kernels of bfloat16.  Functions that use them are compiled for
// processors that multiply bfloat16; has_brain_products() tells whether this is one.

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>

#include "kelvin/math/brain_float.h"

#define KELVIN_BRAIN __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define KELVIN_BRAIN_INLINE KELVIN_BRAIN __attribute__((always_inline)) inline

namespace kelvin {

constexpr int64_t kBrainLanes = 16;

inline bool has_brain_products() {
  return __builtin_cpu_supports("avx512bf16") > 0 && __builtin_cpu_supports("avx512bw") > 0 &&
         __builtin_cpu_supports("avx512dq") > 0 && __builtin_cpu_supports("avx512vl") > 0;
}

KELVIN_BRAIN_INLINE __m512 wide(const BrainFloat* from) {
  const auto halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

// To the nearest, ties to even.
KELVIN_BRAIN_INLINE __m256i narrow(__m512 value) {
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value));
}

KELVIN_BRAIN_INLINE void store(BrainFloat* to, __m512 value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), narrow(value));
}

KELVIN_BRAIN_INLINE __m512 wide(const float* from) { return _mm512_loadu_ps(from); }
KELVIN_BRAIN_INLINE void store(float* to, __m512 value) { _mm512_storeu_ps(to, value); }

// Numbers of both in turns.
KELVIN_BRAIN_INLINE void store_pairs(BrainFloat* to, __m512 first, __m512 second) {
  alignas(64) static constexpr uint16_t kTurns[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                      21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                      11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
  _mm512_storeu_si512(to, _mm512_permutexvar_epi16(_mm512_load_si512(kTurns), both));
}

// The sum over terms of left[row, term] * right[term, vector], where a term is two products of
// neighbours: pairs of bfloat16 are what these processors multiply.  Steps are of pairs, those of
// results of floats.
struct BrainProduct {
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
KELVIN_BRAIN_INLINE void add_products(const BrainProduct& p, __m512 (&sums)[kRows][kVectors]) {
  const auto* left = p.left;
  const auto* right = p.right;
  for (int64_t term = 0; term < p.terms; ++term, left += p.term_step, right += kBrainLanes) {
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

// Results in memory, added to what is there or instead of it.
template <int kRows, int kVectors, bool kAdds>
KELVIN_BRAIN_INLINE void brain_product(const BrainProduct& p) {
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      const auto* from = p.results + row * p.result_step + i * kBrainLanes;
      sums[row][i] = kAdds ? _mm512_loadu_ps(from) : _mm512_setzero_ps();
    }
  }
  add_products<kRows, kVectors>(p, sums);
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      _mm512_storeu_ps(p.results + row * p.result_step + i * kBrainLanes, sums[row][i]);
    }
  }
}

}  // namespace kelvin

#endif
