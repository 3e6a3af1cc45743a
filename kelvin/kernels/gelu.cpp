#include "kelvin/kernels/gelu.h"

#include <algorithm>
#include <array>

#include "kelvin/kernels/bf16_vectors.h"

namespace kelvin {

bool has_gelu_kernels() { return has_bf16_vectors(); }

#if defined(__x86_64__)

namespace {

constexpr int64_t kLanes = kBf16Lanes;

KELVIN_BF16_INLINE __m512 all(float value) { return _mm512_set1_ps(value); }

template <size_t kCount>
KELVIN_BF16_INLINE __m512 polynomial(const std::array<float, kCount>& from_highest, __m512 x) {
  auto sum = all(from_highest[0]);
#pragma GCC unroll 8
  for (size_t i = 1; i < kCount; ++i) sum = _mm512_fmadd_ps(sum, x, all(from_highest[i]));
  return sum;
}

struct Normal {
  __m512 below;    // probability of less
  __m512 density;  // at this place
};

// By formula 7.1.26 of Abramowitz and Stegun, whose error is at most 1.5e-7.
KELVIN_BF16_INLINE Normal normal_at(__m512 x) {
  constexpr float kInverseRoot2 = 0.707106781F;
  constexpr float kInverseRoot2Pi = 0.398942280F;
  constexpr std::array<float, 5> kSeries = {1.061405429F, -1.453152027F, 1.421413741F,
                                            -0.284496736F, 0.254829592F};
  constexpr float kFarthest = 16;  // where e^(-x^2 / 2) is zero
  static_assert(-0.5F * kFarthest * kFarthest == kLeastExponent);
  constexpr int kLesserWithoutSign = 0b1010;
  const auto distance = _mm512_range_ps(x, all(kFarthest), kLesserWithoutSign);
  const auto bell = exponential(all(-0.5F) * distance * distance);
  const auto t = all(1) / _mm512_fmadd_ps(distance, all(0.3275911F * kInverseRoot2), all(1));
  const auto beyond = all(0.5F) * t * bell * polynomial(kSeries, t);
  const auto is_negative = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
  return {.below = _mm512_mask_mov_ps(all(1) - beyond, is_negative, beyond),
          .density = all(kInverseRoot2Pi) * bell};
}

KELVIN_BF16_INLINE __m512 gelu_of(__m512 x) { return x * normal_at(x).below; }

KELVIN_BF16_INLINE __m512 slope_of(__m512 x) {
  const auto normal = normal_at(x);
  return _mm512_fmadd_ps(x, normal.density, normal.below);
}

// Sixteen numbers of which the last ones may be missing.
template <class Number>
using Sixteen = std::array<Number, kLanes>;

template <class Number>
Sixteen<Number> last_of(const Number* from, int64_t count) {
  Sixteen<Number> last{};
  std::copy_n(from, count, last.begin());
  return last;
}

template <class Number>
KELVIN_BF16 void map(const Number* x, int64_t count, Number* y) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(y + i, gelu_of(wide(x + i)));
  if (i == count) return;
  auto last = last_of(x + i, count - i);
  store(last.data(), gelu_of(wide(last.data())));
  std::copy_n(last.begin(), count - i, y + i);
}

template <class Number>
KELVIN_BF16 void map_back(const Number* x, const Number* gradient, int64_t count, Number* result) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(result + i, wide(gradient + i) * slope_of(wide(x + i)));
  }
  if (i == count) return;
  const auto last = last_of(x + i, count - i);
  auto back = last_of(gradient + i, count - i);
  store(back.data(), wide(back.data()) * slope_of(wide(last.data())));
  std::copy_n(back.begin(), count - i, result + i);
}

}  // namespace

template <class Number>
void gelu_numbers(const Number* x, int64_t count, Number* y) {
  map(x, count, y);
}

template <class Number>
void gelu_gradient(const Number* x, const Number* gradient, int64_t count, Number* result) {
  map_back(x, gradient, count, result);
}

#else

template <class Number>
void gelu_numbers(const Number*, int64_t, Number*) {
  missing_kernel();
}
template <class Number>
void gelu_gradient(const Number*, const Number*, int64_t, Number*) {
  missing_kernel();
}

#endif

template void gelu_numbers(const float*, int64_t, float*);
template void gelu_numbers(const Bf16*, int64_t, Bf16*);
template void gelu_gradient(const float*, const float*, int64_t, float*);
template void gelu_gradient(const Bf16*, const Bf16*, int64_t, Bf16*);

}  // namespace kelvin
