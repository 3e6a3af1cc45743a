#pragma once

// Vectors of `kLanes` floats for kernels over rows, written once for all instruction sets: sixteen
// lanes for AVX-512, eight for AVX2, four elsewhere.  All is inlined into a function that is
// compiled for one of them.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>
#include <utility>

#include "kelvin/kernels/bf16.h"

#define KELVIN_ROW_INLINE [[gnu::always_inline]] inline

namespace kelvin {

enum class InstructionSet { generic, avx2, avx512 };

// The widest that this processor has.
inline InstructionSet widest_instruction_set() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return InstructionSet::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return InstructionSet::avx2;
#endif
  return InstructionSet::generic;
}

#if defined(__x86_64__)
#define KELVIN_ROW_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]]
#define KELVIN_ROW_AVX2 [[gnu::target("avx2,fma")]]
#endif

template <int kLanes>
struct RowVectors {
  typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));
  typedef int32_t Ints __attribute__((vector_size(kLanes * sizeof(int32_t))));
  typedef uint32_t Bits __attribute__((vector_size(kLanes * sizeof(uint32_t))));
  typedef uint16_t Halves __attribute__((vector_size(kLanes * sizeof(uint16_t))));
};
template <int kLanes>
using Floats = typename RowVectors<kLanes>::Floats;
template <int kLanes>
using Ints = typename RowVectors<kLanes>::Ints;

template <int kLanes>
KELVIN_ROW_INLINE Floats<kLanes> all_lanes(float value) {
  return Floats<kLanes>{} + value;
}

// 0, 1, 2, ...
template <int kLanes>
KELVIN_ROW_INLINE Ints<kLanes> lane_numbers() {
  Ints<kLanes> numbers;
#pragma GCC unroll 16
  for (int lane = 0; lane < kLanes; ++lane) numbers[lane] = lane;
  return numbers;
}

// The larger of both in each lane; `other` where one of them is no number.
template <class Vector>
KELVIN_ROW_INLINE Vector larger(Vector one, Vector other) {
  return one > other ? one : other;
}

template <int kLanes>
KELVIN_ROW_INLINE Floats<kLanes> load_lanes(const float* from) {
  Floats<kLanes> lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}
template <int kLanes>
KELVIN_ROW_INLINE Floats<kLanes> load_lanes(const Bf16* from) {
  typename RowVectors<kLanes>::Halves halves;
  std::memcpy(&halves, from, sizeof(halves));
  using Bits = typename RowVectors<kLanes>::Bits;
  return std::bit_cast<Floats<kLanes>>(__builtin_convertvector(halves, Bits) << 16);
}

template <int kLanes>
KELVIN_ROW_INLINE void store_lanes(float* to, Floats<kLanes> lanes) {
  std::memcpy(to, &lanes, sizeof(lanes));
}
// To the nearest, ties to even; NaN stays NaN.
template <int kLanes>
KELVIN_ROW_INLINE typename RowVectors<kLanes>::Halves rounded_lanes(Floats<kLanes> lanes) {
  using Vectors = RowVectors<kLanes>;
  const auto bits = std::bit_cast<typename Vectors::Bits>(lanes);
  const auto nearest = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  constexpr uint32_t kNan = 0x7fc0;
  const auto kept = lanes == lanes ? nearest : typename Vectors::Bits{} + kNan;
  return __builtin_convertvector(kept, typename Vectors::Halves);
}
template <int kLanes>
KELVIN_ROW_INLINE void store_lanes(Bf16* to, Floats<kLanes> lanes) {
  const auto halves = rounded_lanes<kLanes>(lanes);
  std::memcpy(static_cast<void*>(to), &halves, sizeof(halves));
}

// The first `count` lanes from memory, the others `filling`; reads all of them if it may.
template <int kLanes, class Number>
KELVIN_ROW_INLINE Floats<kLanes> load_first(const Number* from, int64_t count, bool may_read_on,
                                            float filling) {
  Number last[kLanes] = {};
  if (!may_read_on) {
    for (int64_t i = 0; i < count; ++i) last[i] = from[i];
  }
  const auto lanes = load_lanes<kLanes>(may_read_on ? from : last);
  return lane_numbers<kLanes>() < static_cast<int32_t>(count) ? lanes : all_lanes<kLanes>(filling);
}

// The first `count` lanes to memory; writes all of them if it may.
template <int kLanes, class Number>
KELVIN_ROW_INLINE void store_first(Number* to, int64_t count, bool may_write_on,
                                   Floats<kLanes> lanes) {
  if (may_write_on) return store_lanes<kLanes>(to, lanes);
  Number last[kLanes];
  store_lanes<kLanes>(last, lanes);
  for (int64_t i = 0; i < count; ++i) to[i] = last[i];
}

constexpr int64_t kRowBlock = 2048;  // numbers of a row that are added up in float32

// A row, and how many numbers may be read from its start on.
template <class Number>
struct ReadRow {
  const Number* numbers = nullptr;
  int64_t readable = 0;
};

// The vector at place `i` of the first `columns` numbers; lanes behind them are `filling`.
template <int kLanes, class Number>
KELVIN_ROW_INLINE Floats<kLanes> load_at(const ReadRow<Number>& row, int64_t i, int64_t columns,
                                         float filling) {
  if (i + kLanes <= columns) return load_lanes<kLanes>(row.numbers + i);
  return load_first<kLanes>(row.numbers + i, columns - i, i + kLanes <= row.readable, filling);
}

// Shows vectors of [begin, end) to `work` with their places; lanes behind the end are masked.
template <int kLanes, class Number, class Work>
KELVIN_ROW_INLINE void for_vectors(const ReadRow<Number>& row, int64_t begin, int64_t end,
                                   const Work& work) {
  auto i = begin;
  for (; i + kLanes <= end; i += kLanes) work(i, load_lanes<kLanes>(row.numbers + i));
  if (i < end) work(i, load_at<kLanes>(row, i, end, -std::numeric_limits<float>::infinity()));
}

// a0 b0 a1 b1 ... of the first halves of both, or of the second ones.
template <int kLanes, bool kSecond>
KELVIN_ROW_INLINE Floats<kLanes> interleaved(Floats<kLanes> a, Floats<kLanes> b) {
  constexpr int kFirst = kSecond ? kLanes / 2 : 0;
  const auto shuffled = [&]<int... kLane>(std::integer_sequence<int, kLane...>)
      __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b, (kFirst + kLane / 2 + kLane % 2 * kLanes)...);
  };
  return shuffled(std::make_integer_sequence<int, kLanes>());
}

// What `combine` makes of all lanes of each vector: that of rows[i] in lane i.
template <int kLanes, class Combine>
KELVIN_ROW_INLINE Floats<kLanes> combined_lanes(Floats<kLanes> (&rows)[kLanes],
                                                const Combine& combine) {
#pragma GCC unroll 4
  for (int half = kLanes / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) {
      rows[i] = combine(interleaved<kLanes, false>(rows[i], rows[i + half]),
                        interleaved<kLanes, true>(rows[i], rows[i + half]));
    }
  }
  return rows[0];
}

// Each lane and the one that is kDistance away, by the bits of their numbers.
template <int kLanes, int kDistance>
KELVIN_ROW_INLINE Floats<kLanes> exchanged(Floats<kLanes> lanes) {
  const auto shuffled = [&]<int... kLane>(std::integer_sequence<int, kLane...>)
      __attribute__((always_inline)) {
    return __builtin_shufflevector(lanes, lanes, (kLane ^ kDistance)...);
  };
  return shuffled(std::make_integer_sequence<int, kLanes>());
}

template <int kLanes>
KELVIN_ROW_INLINE double sum_of_lanes(Floats<kLanes> lanes) {
  if constexpr (kLanes > 8) lanes += exchanged<kLanes, 8>(lanes);
  if constexpr (kLanes > 4) lanes += exchanged<kLanes, 4>(lanes);
  lanes += exchanged<kLanes, 2>(lanes);
  lanes += exchanged<kLanes, 1>(lanes);
  return static_cast<double>(lanes[0]);
}

// What turns distances below the largest logit into e^(distance * factor): the exponent of two, in
// two parts, and the distance where nothing is left, so that -infinity becomes exactly 0.
struct PowerScale {
  float high = 0;
  float low = 0;
  float least = 0;
};

constexpr float kNoPower = -127;  // the exponent of two whose bits are those of 0
constexpr float kLowestNumber = std::numeric_limits<float>::lowest();

// For factors of at least 1e-35.
inline PowerScale power_scale(double factor) {
  const double exponent = factor * std::numbers::log2e;
  const auto high = static_cast<float>(exponent);
  return {.high = high,
          .low = static_cast<float>(exponent - static_cast<double>(high)),
          .least = std::max(kNoPower / high, kLowestNumber)};
}

// 2^(d * (high + low)) for least <= d <= 0, to two units of the last place if products can be fused
// with sums, and otherwise to as many as the rounding of d * high makes.
template <int kLanes>
KELVIN_ROW_INLINE Floats<kLanes> powers(Floats<kLanes> d, const PowerScale& scale) {
  // Adding it leaves no room for a fraction; the lowest bits are the biased exponent then.
  constexpr float kRounder = 12582912 + 127;
  const auto shifted = d * scale.high + kRounder;
  const auto whole = shifted - kRounder;
  auto rest = d * scale.high - whole;
  rest = d * scale.low + rest;
  auto sum = rest * 1.3264727e-3F + 9.6715127e-3F;
  sum = sum * rest + 5.5507337e-2F;
  sum = sum * rest + 2.4022242e-1F;
  sum = sum * rest + 6.9314698e-1F;
  sum = sum * rest + 1.0F;
  return sum * std::bit_cast<Floats<kLanes>>(std::bit_cast<Ints<kLanes>>(shifted) << 23);
}

// The natural logarithm of a normal number above 0, off by at most 1e-7, without branches; by the
// polynomial of Cephes.
KELVIN_ROW_INLINE double logarithm(float x) {
  constexpr int32_t kRootHalf = 0x3f3504f3;
  const auto bits = std::bit_cast<int32_t>(x);
  const int32_t exponent = (bits - kRootHalf) >> 23;
  const float f = std::bit_cast<float>(bits - exponent * (1 << 23)) - 1.0F;
  float sum = f * 7.0376836292e-2F - 1.1514610310e-1F;
  sum = sum * f + 1.1676998740e-1F;
  sum = sum * f - 1.2420140846e-1F;
  sum = sum * f + 1.4249322787e-1F;
  sum = sum * f - 1.6668057665e-1F;
  sum = sum * f + 2.0000714765e-1F;
  sum = sum * f - 2.4999993993e-1F;
  sum = sum * f + 3.3333331174e-1F;
  const float square = f * f;
  const float rest = f + (sum * f * square - 0.5F * square);
  return static_cast<double>(exponent) * std::numbers::ln2 + static_cast<double>(rest);
}

}  // namespace kelvin
