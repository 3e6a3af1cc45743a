#pragma once

// Vectors of sixteen numbers for kernels of float32 and bfloat16.  Functions that use them are
// compiled for processors that have AVX-512 with bfloat16; has_bf16_vectors() tells whether this
// is one.  Elsewhere there are none, and every kernel that is written with them is a
// missing_kernel().

#include <cstdint>

#include "kelvin/kernels/bf16.h"
#include "kelvin/kernels/instruction_sets.h"

namespace kelvin {

constexpr int64_t kBf16Lanes = 16;

}  // namespace kelvin

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#define KELVIN_BF16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
#define KELVIN_BF16_INLINE KELVIN_BF16 __attribute__((always_inline)) inline

namespace kelvin {

inline bool has_bf16_vectors() {
  return __builtin_cpu_supports("avx512bf16") > 0 && __builtin_cpu_supports("avx512bw") > 0 &&
         __builtin_cpu_supports("avx512dq") > 0 && __builtin_cpu_supports("avx512vl") > 0;
}

// Tiles of bfloat16, AMX; __builtin_cpu_supports knows them in few compilers.
inline bool has_bf16_tiles() {
  constexpr unsigned kFeatures = 7;
  constexpr unsigned kTiles = 1U << 22;  // in the last register
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) != 0 && (d & kTiles) != 0;
}

// Whether products of these vectors are the fastest that the processor has: its tiles, if there are
// any, multiply several times as fast, and oneDNN uses those.
inline bool has_bf16_products() {
  static const bool has = has_bf16_vectors() && !has_bf16_tiles();
  return has;
}

KELVIN_BF16_INLINE __m512 wide(const Bf16* from) {
  const auto halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

// To the nearest, ties to even.
KELVIN_BF16_INLINE __m256i narrow(__m512 value) {
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value));
}

KELVIN_BF16_INLINE void store(Bf16* to, __m512 value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), narrow(value));
}

KELVIN_BF16_INLINE __m512 wide(const float* from) { return _mm512_loadu_ps(from); }
KELVIN_BF16_INLINE void store(float* to, __m512 value) { _mm512_storeu_ps(to, value); }

// Numbers of both in turns.
KELVIN_BF16_INLINE void store_pairs(Bf16* to, __m512 first, __m512 second) {
  alignas(64) static constexpr uint16_t kTurns[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                      21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                      11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
  _mm512_storeu_si512(to, _mm512_permutexvar_epi16(_mm512_load_si512(kTurns), both));
}

// e^x is zero below; of numbers that are far less, exponential leaves nothing but rounding.
constexpr float kLeastExponent = -128;

// e^x: a power of two, and a series for what is left of the exponent.
KELVIN_BF16_INLINE __m512 exponential(__m512 x) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2High = 0.693145752F;  // with zeros at its end, so that products are exact
  constexpr float kLn2Low = 1.42860677e-6F;
  const auto power = _mm512_roundscale_ps(x * _mm512_set1_ps(kLog2E),
                                          _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const auto near = _mm512_fnmadd_ps(power, _mm512_set1_ps(kLn2High), x);
  const auto rest = _mm512_fnmadd_ps(power, _mm512_set1_ps(kLn2Low), near);
  auto sum = _mm512_set1_ps(1.0F / 720);
  for (const float factor : {1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F}) {
    sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(factor));
  }
  return _mm512_scalef_ps(sum, power);
}

}  // namespace kelvin

#else

namespace kelvin {

inline bool has_bf16_vectors() { return false; }
inline bool has_bf16_products() { return false; }

}  // namespace kelvin

#endif
