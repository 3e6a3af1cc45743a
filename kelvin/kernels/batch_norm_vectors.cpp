#include "kelvin/kernels/batch_norm_vectors.h"

#include <algorithm>

#include "kelvin/kernels/bf16_vectors.h"

namespace kelvin {

bool suits_norm_relu_vectors(int64_t channels) {
  static const bool has = has_bf16_vectors();
  return has && channels % kBf16Lanes == 0;
}

#if defined(__x86_64__)

namespace {

constexpr int64_t kLanes = kBf16Lanes;
// Rows that go by before the next channels have their turn: their other channels are still near
// then, and sums in float32 are of no more.
constexpr int64_t kRowsAtOnce = 64;

// Calls work(channel, first, last) for sixteen channels of some rows at a time.
template <class Work>
KELVIN_BF16 void for_vectors(int64_t channels, int64_t begin, int64_t end, const Work& work) {
  for (auto first = begin; first < end; first += kRowsAtOnce) {
    const auto last = std::min(first + kRowsAtOnce, end);
    for (int64_t channel = 0; channel < channels; channel += kLanes) work(channel, first, last);
  }
}

// The same in both directions to the last bit, or forward and backward would disagree on which are
// positive.
KELVIN_BF16_INLINE __m512 mapped(__m512 x, __m512 scale, __m512 offset) {
  return _mm512_fmadd_ps(x, scale, offset);
}

// Zero below zero; NaN stays NaN.
KELVIN_BF16_INLINE __m512 relu(__m512 z) { return _mm512_max_ps(_mm512_setzero_ps(), z); }

// `g` where `seen` is positive, zero elsewhere.
KELVIN_BF16_INLINE __m512 where_positive(__m512 seen, __m512 g) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(seen, _mm512_setzero_ps(), _CMP_GT_OQ), g);
}

KELVIN_BF16_INLINE void add_to(double* sums, __m512 values) {
  const auto low = _mm512_cvtps_pd(_mm512_castps512_ps256(values));
  const auto high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(values, 1));
  _mm512_storeu_pd(sums, _mm512_loadu_pd(sums) + low);
  _mm512_storeu_pd(sums + kLanes / 2, _mm512_loadu_pd(sums + kLanes / 2) + high);
}

// Sums have even and odd rows apart, so that one addition need not wait for the other.

template <class Pixel>
struct MomentVectors {
  const Pixel* x;
  int64_t channels;
  const float* shift;
  double* sums;

  KELVIN_BF16_INLINE void operator()(int64_t channel, int64_t begin, int64_t end) const {
    const auto origin = _mm512_loadu_ps(shift + channel);
    __m512 distances[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    __m512 squares[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    const auto* from = x + begin * channels + channel;
    const auto add = [&](int which) KELVIN_BF16 __attribute__((always_inline)) {
      const auto distance = wide(from) - origin;
      distances[which] += distance;
      squares[which] = _mm512_fmadd_ps(distance, distance, squares[which]);
      from += channels;
    };
    auto row = begin;
    for (; row + 2 <= end; row += 2) {
      add(0);
      add(1);
    }
    if (row < end) add(0);
    add_to(sums + channel, distances[0] + distances[1]);
    add_to(sums + channels + channel, squares[0] + squares[1]);
  }
};

template <class Pixel>
struct MapVectors {
  const Pixel* x;
  int64_t channels;
  const ChannelMap& map;
  const Pixel* added;
  Pixel* y;

  KELVIN_BF16_INLINE void operator()(int64_t channel, int64_t begin, int64_t end) const {
    const auto scale = _mm512_loadu_ps(map.scale + channel);
    const auto offset = _mm512_loadu_ps(map.offset + channel);
    auto place = begin * channels + channel;
    if (added == nullptr) {
      for (auto row = begin; row < end; ++row, place += channels) {
        store(y + place, relu(mapped(wide(x + place), scale, offset)));
      }
    } else {
      for (auto row = begin; row < end; ++row, place += channels) {
        store(y + place, relu(mapped(wide(x + place), scale, offset) + wide(added + place)));
      }
    }
  }
};

template <bool kIsAdded, class Pixel>
struct GradientSumVectors {
  const NormReluGradient<Pixel>& rows;
  Pixel* masked;
  double* sums;

  KELVIN_BF16_INLINE void operator()(int64_t channel, int64_t begin, int64_t end) const {
    const auto channels = rows.channels;
    const auto mean = _mm512_loadu_ps(rows.mean + channel);
    const auto scale = _mm512_loadu_ps(rows.map.scale + channel);
    const auto offset = _mm512_loadu_ps(rows.map.offset + channel);
    __m512 gradients[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    __m512 products[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    auto place = begin * channels + channel;
    const auto add = [&](int which) KELVIN_BF16 __attribute__((always_inline)) {
      const auto value = wide(rows.x + place);
      const auto seen = kIsAdded ? wide(rows.y + place) : mapped(value, scale, offset);
      const auto g = where_positive(seen, wide(rows.gradient + place));
      if constexpr (kIsAdded) store(masked + place, g);
      gradients[which] += g;
      products[which] = _mm512_fmadd_ps(g, value - mean, products[which]);
      place += channels;
    };
    auto row = begin;
    for (; row + 2 <= end; row += 2) {
      add(0);
      add(1);
    }
    if (row < end) add(0);
    add_to(sums + channel, gradients[0] + gradients[1]);
    add_to(sums + channels + channel, products[0] + products[1]);
  }
};

template <class Pixel>
struct GradientVectors {
  const NormReluGradient<Pixel>& rows;
  const GradientMap& by;
  const Pixel* masked;
  Pixel* result;

  KELVIN_BF16_INLINE void operator()(int64_t channel, int64_t begin, int64_t end) const {
    const auto channels = rows.channels;
    const auto a = _mm512_loadu_ps(by.of_gradient + channel);
    const auto b = _mm512_loadu_ps(by.of_x + channel);
    const auto k = _mm512_loadu_ps(by.constant + channel);
    const auto mean = _mm512_loadu_ps(rows.mean + channel);
    const auto scale = _mm512_loadu_ps(rows.map.scale + channel);
    const auto offset = _mm512_loadu_ps(rows.map.offset + channel);
    auto place = begin * channels + channel;
    for (auto row = begin; row < end; ++row, place += channels) {
      const auto value = wide(rows.x + place);
      const auto g = masked != nullptr ? wide(masked + place)
                                       : where_positive(mapped(value, scale, offset),
                                                        wide(rows.gradient + place));
      store(result + place, _mm512_fmadd_ps(g, a, _mm512_fmadd_ps(value - mean, b, k)));
    }
  }
};

}  // namespace

template <class Pixel>
void moments_of_vectors(const Pixel* x, int64_t channels, const float* shift, int64_t begin,
                        int64_t end, double* sums) {
  std::fill_n(sums, 2 * channels, 0.0);
  for_vectors(channels, begin, end,
              MomentVectors<Pixel>{.x = x, .channels = channels, .shift = shift, .sums = sums});
}

template <class Pixel>
void norm_relu_vectors(const Pixel* x, int64_t channels, const ChannelMap& map, const Pixel* added,
                       int64_t begin, int64_t end, Pixel* y) {
  for_vectors(channels, begin, end,
              MapVectors<Pixel>{.x = x, .channels = channels, .map = map, .added = added, .y = y});
}

template <class Pixel>
void gradient_sums_of_vectors(const NormReluGradient<Pixel>& rows, int64_t begin, int64_t end,
                              Pixel* masked, double* sums) {
  std::fill_n(sums, 2 * rows.channels, 0.0);
  if (rows.y == nullptr) {
    for_vectors(rows.channels, begin, end, GradientSumVectors<false, Pixel>{rows, masked, sums});
  } else {
    for_vectors(rows.channels, begin, end, GradientSumVectors<true, Pixel>{rows, masked, sums});
  }
}

template <class Pixel>
void gradient_vectors(const NormReluGradient<Pixel>& rows, const GradientMap& map,
                      const Pixel* masked, int64_t begin, int64_t end, Pixel* result) {
  for_vectors(rows.channels, begin, end, GradientVectors<Pixel>{rows, map, masked, result});
}

#else

template <class Pixel>
void moments_of_vectors(const Pixel*, int64_t, const float*, int64_t, int64_t, double*) {
  missing_kernel();
}
template <class Pixel>
void norm_relu_vectors(const Pixel*, int64_t, const ChannelMap&, const Pixel*, int64_t, int64_t,
                       Pixel*) {
  missing_kernel();
}
template <class Pixel>
void gradient_sums_of_vectors(const NormReluGradient<Pixel>&, int64_t, int64_t, Pixel*, double*) {
  missing_kernel();
}
template <class Pixel>
void gradient_vectors(const NormReluGradient<Pixel>&, const GradientMap&, const Pixel*, int64_t,
                      int64_t, Pixel*) {
  missing_kernel();
}

#endif

template void moments_of_vectors(const float*, int64_t, const float*, int64_t, int64_t, double*);
template void moments_of_vectors(const Bf16*, int64_t, const float*, int64_t, int64_t, double*);
template void norm_relu_vectors(const float*, int64_t, const ChannelMap&, const float*, int64_t,
                                int64_t, float*);
template void norm_relu_vectors(const Bf16*, int64_t, const ChannelMap&, const Bf16*, int64_t,
                                int64_t, Bf16*);
template void gradient_sums_of_vectors(const NormReluGradient<float>&, int64_t, int64_t, float*,
                                       double*);
template void gradient_sums_of_vectors(const NormReluGradient<Bf16>&, int64_t, int64_t, Bf16*,
                                       double*);
template void gradient_vectors(const NormReluGradient<float>&, const GradientMap&, const float*,
                               int64_t, int64_t, float*);
template void gradient_vectors(const NormReluGradient<Bf16>&, const GradientMap&, const Bf16*,
                               int64_t, int64_t, Bf16*);

}  // namespace kelvin
