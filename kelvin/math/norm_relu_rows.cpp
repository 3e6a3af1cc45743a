#include "kelvin/math/norm_relu_rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

// Plain loops over channels that the compiler turns into vectors, inlined into one function per
// instruction set.

#define KELVIN_INLINE __attribute__((always_inline)) inline
#if defined(__x86_64__)
#define KELVIN_VECTORS \
  __attribute__((target_clones("default", "arch=haswell", "arch=skylake-avx512")))
#else
#define KELVIN_VECTORS
#endif

namespace kelvin {
namespace {

constexpr int64_t kRowsOfASum = 64;  // of float32; errors stay below those of the maps themselves
constexpr int64_t kRowsAtOnce = 4;

// What becomes of a pixel before relu.  The same in both directions to the last bit, or forward and
// backward would disagree on which are positive.
KELVIN_INLINE float mapped(float x, float scale, float offset) { return x * scale + offset; }

// Adds float32 sums to double ones and starts them anew.
KELVIN_INLINE void flush(float* __restrict small, double* __restrict sums, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    sums[i] += static_cast<double>(small[i]);
    small[i] = 0;
  }
}

// Lets `rows` add four rows at a time, the last ones alone, to two sums of each channel.
template <class Rows>
KELVIN_INLINE void sum_rows(const Rows& rows, int64_t channels, int64_t begin, int64_t end,
                            double* sums) {
  std::vector<float> small(static_cast<size_t>(2 * channels));
  std::fill_n(sums, 2 * channels, 0.0);
  for (auto first = begin; first < end; first += kRowsOfASum) {
    const auto last = std::min(first + kRowsOfASum, end);
    auto row = first;
    for (; row + kRowsAtOnce <= last; row += kRowsAtOnce) {
      rows.add_four(row, small.data(), small.data() + channels);
    }
    for (; row < last; ++row) rows.add_one(row, small.data(), small.data() + channels);
    flush(small.data(), sums, 2 * channels);
  }
}

struct MomentSums {
  const float* x;
  int64_t channels;
  const float* shift;

  KELVIN_INLINE void add_four(int64_t row, float* __restrict sums,
                              float* __restrict squares) const {
    const float* __restrict a = x + row * channels;
    const float* __restrict b = a + channels;
    const float* __restrict c = b + channels;
    const float* __restrict d = c + channels;
    const float* __restrict s = shift;
    for (int64_t i = 0; i < channels; ++i) {
      const float e = a[i] - s[i];
      const float f = b[i] - s[i];
      const float g = c[i] - s[i];
      const float h = d[i] - s[i];
      sums[i] += (e + f) + (g + h);
      squares[i] += (e * e + f * f) + (g * g + h * h);
    }
  }

  KELVIN_INLINE void add_one(int64_t row, float* __restrict sums, float* __restrict squares) const {
    const float* __restrict a = x + row * channels;
    const float* __restrict s = shift;
    for (int64_t i = 0; i < channels; ++i) {
      const float e = a[i] - s[i];
      sums[i] += e;
      squares[i] += e * e;
    }
  }
};

template <bool kIsAdded>
struct GradientSums {
  const NormReluGradient& rows;
  float* masked;

  KELVIN_INLINE void add_one(int64_t row, float* __restrict sums,
                             float* __restrict products) const {
    const auto channels = rows.channels;
    const float* __restrict x = rows.x + row * channels;
    const float* __restrict gradient = rows.gradient + row * channels;
    const float* __restrict y = kIsAdded ? rows.y + row * channels : nullptr;
    const float* __restrict mean = rows.mean;
    const float* __restrict scale = rows.map.scale;
    const float* __restrict offset = rows.map.offset;
    float* __restrict to = kIsAdded ? masked + row * channels : nullptr;
    for (int64_t c = 0; c < channels; ++c) {
      const float seen = kIsAdded ? y[c] : mapped(x[c], scale[c], offset[c]);
      const float whole = gradient[c];
      const float g = seen > 0 ? whole : 0.0F;
      if constexpr (kIsAdded) to[c] = g;
      sums[c] += g;
      products[c] += g * (x[c] - mean[c]);
    }
  }

  KELVIN_INLINE void add_four(int64_t row, float* sums, float* products) const {
    for (int64_t i = 0; i < kRowsAtOnce; ++i) add_one(row + i, sums, products);
  }
};

}  // namespace

KELVIN_VECTORS
void moments_of_rows(const float* x, int64_t channels, const float* shift, int64_t begin,
                     int64_t end, double* sums) {
  sum_rows(MomentSums{.x = x, .channels = channels, .shift = shift}, channels, begin, end, sums);
}

KELVIN_VECTORS
void norm_relu_rows(const float* x, int64_t channels, const ChannelMap& map, const float* added,
                    int64_t begin, int64_t end, float* y) {
  const float* __restrict scale = map.scale;
  const float* __restrict offset = map.offset;
  for (auto row = begin; row < end; ++row) {
    const float* __restrict from = x + row * channels;
    float* __restrict to = y + row * channels;
    // Compared so that NaN stays NaN.
    if (added == nullptr) {
      for (int64_t c = 0; c < channels; ++c) {
        const float z = mapped(from[c], scale[c], offset[c]);
        to[c] = z < 0 ? 0.0F : z;
      }
    } else {
      const float* __restrict more = added + row * channels;
      for (int64_t c = 0; c < channels; ++c) {
        const float z = mapped(from[c], scale[c], offset[c]) + more[c];
        to[c] = z < 0 ? 0.0F : z;
      }
    }
  }
}

KELVIN_VECTORS
void gradient_sums_of_rows(const NormReluGradient& rows, int64_t begin, int64_t end, float* masked,
                           double* sums) {
  const auto channels = rows.channels;
  if (rows.y == nullptr) {
    sum_rows(GradientSums<false>{rows, masked}, channels, begin, end, sums);
  } else {
    sum_rows(GradientSums<true>{rows, masked}, channels, begin, end, sums);
  }
}

KELVIN_VECTORS
void gradient_rows(const NormReluGradient& rows, const GradientMap& map, const float* masked,
                   int64_t begin, int64_t end, float* result) {
  const auto channels = rows.channels;
  const float* __restrict a = map.of_gradient;
  const float* __restrict b = map.of_x;
  const float* __restrict k = map.constant;
  const float* __restrict mean = rows.mean;
  const float* __restrict scale = rows.map.scale;
  const float* __restrict offset = rows.map.offset;
  for (auto row = begin; row < end; ++row) {
    const float* __restrict x = rows.x + row * channels;
    float* __restrict to = result + row * channels;
    if (masked != nullptr) {
      const float* __restrict g = masked + row * channels;
      for (int64_t c = 0; c < channels; ++c) {
        to[c] = g[c] * a[c] + ((x[c] - mean[c]) * b[c] + k[c]);
      }
    } else {
      const float* __restrict gradient = rows.gradient + row * channels;
      for (int64_t c = 0; c < channels; ++c) {
        const float g = mapped(x[c], scale[c], offset[c]) > 0 ? gradient[c] : 0.0F;
        to[c] = g * a[c] + ((x[c] - mean[c]) * b[c] + k[c]);
      }
    }
  }
}

}  // namespace kelvin
