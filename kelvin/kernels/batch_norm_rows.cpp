#include "kelvin/kernels/batch_norm_rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kelvin/kernels/batch_norm_vectors.h"
#include "kelvin/kernels/instruction_sets.h"

// Plain loops over channels that the compiler turns into vectors, inlined into one function per
// instruction set.

#define KELVIN_INLINE __attribute__((always_inline)) inline

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

template <class Pixel>
struct MomentSums {
  const Pixel* x;
  int64_t channels;
  const float* shift;

  KELVIN_INLINE void add_four(int64_t row, float* __restrict sums,
                              float* __restrict squares) const {
    const Pixel* __restrict a = x + row * channels;
    const Pixel* __restrict b = a + channels;
    const Pixel* __restrict c = b + channels;
    const Pixel* __restrict d = c + channels;
    const float* __restrict s = shift;
    for (int64_t i = 0; i < channels; ++i) {
      const float e = number(a[i]) - s[i];
      const float f = number(b[i]) - s[i];
      const float g = number(c[i]) - s[i];
      const float h = number(d[i]) - s[i];
      sums[i] += (e + f) + (g + h);
      squares[i] += (e * e + f * f) + (g * g + h * h);
    }
  }

  KELVIN_INLINE void add_one(int64_t row, float* __restrict sums, float* __restrict squares) const {
    const Pixel* __restrict a = x + row * channels;
    const float* __restrict s = shift;
    for (int64_t i = 0; i < channels; ++i) {
      const float e = number(a[i]) - s[i];
      sums[i] += e;
      squares[i] += e * e;
    }
  }
};

template <bool kIsAdded, class Pixel>
struct GradientSums {
  const NormReluGradient<Pixel>& rows;
  Pixel* masked;

  KELVIN_INLINE void add_one(int64_t row, float* __restrict sums,
                             float* __restrict products) const {
    const auto channels = rows.channels;
    const Pixel* __restrict x = rows.x + row * channels;
    const Pixel* __restrict gradient = rows.gradient + row * channels;
    const Pixel* __restrict y = kIsAdded ? rows.y + row * channels : nullptr;
    const float* __restrict mean = rows.mean;
    const float* __restrict scale = rows.map.scale;
    const float* __restrict offset = rows.map.offset;
    Pixel* __restrict to = kIsAdded ? masked + row * channels : nullptr;
    for (int64_t c = 0; c < channels; ++c) {
      const float value = number(x[c]);
      const float seen = kIsAdded ? number(y[c]) : mapped(value, scale[c], offset[c]);
      const float whole = number(gradient[c]);
      const float g = seen > 0 ? whole : 0.0F;
      if constexpr (kIsAdded) put(g, to[c]);
      sums[c] += g;
      products[c] += g * (value - mean[c]);
    }
  }

  KELVIN_INLINE void add_four(int64_t row, float* sums, float* products) const {
    for (int64_t i = 0; i < kRowsAtOnce; ++i) add_one(row + i, sums, products);
  }
};

template <class Pixel>
KELVIN_INLINE void map_rows(const Pixel* x, int64_t channels, const ChannelMap& map,
                            const Pixel* added, int64_t begin, int64_t end, Pixel* y) {
  const float* __restrict scale = map.scale;
  const float* __restrict offset = map.offset;
  for (auto row = begin; row < end; ++row) {
    const Pixel* __restrict from = x + row * channels;
    Pixel* __restrict to = y + row * channels;
    // Compared so that NaN stays NaN.
    if (added == nullptr) {
      for (int64_t c = 0; c < channels; ++c) {
        const float z = mapped(number(from[c]), scale[c], offset[c]);
        put(z < 0 ? 0.0F : z, to[c]);
      }
    } else {
      const Pixel* __restrict more = added + row * channels;
      for (int64_t c = 0; c < channels; ++c) {
        const float z = mapped(number(from[c]), scale[c], offset[c]) + number(more[c]);
        put(z < 0 ? 0.0F : z, to[c]);
      }
    }
  }
}

template <class Pixel>
KELVIN_INLINE void sum_gradients(const NormReluGradient<Pixel>& rows, int64_t begin, int64_t end,
                                 Pixel* masked, double* sums) {
  const auto channels = rows.channels;
  if (rows.y == nullptr) {
    sum_rows(GradientSums<false, Pixel>{rows, masked}, channels, begin, end, sums);
  } else {
    sum_rows(GradientSums<true, Pixel>{rows, masked}, channels, begin, end, sums);
  }
}

template <class Pixel>
KELVIN_INLINE void map_gradients(const NormReluGradient<Pixel>& rows, const GradientMap& map,
                                 const Pixel* masked, int64_t begin, int64_t end, Pixel* result) {
  const auto channels = rows.channels;
  const float* __restrict a = map.of_gradient;
  const float* __restrict b = map.of_x;
  const float* __restrict k = map.constant;
  const float* __restrict mean = rows.mean;
  const float* __restrict scale = rows.map.scale;
  const float* __restrict offset = rows.map.offset;
  for (auto row = begin; row < end; ++row) {
    const Pixel* __restrict x = rows.x + row * channels;
    Pixel* __restrict to = result + row * channels;
    if (masked != nullptr) {
      const Pixel* __restrict g = masked + row * channels;
      for (int64_t c = 0; c < channels; ++c) {
        put(number(g[c]) * a[c] + ((number(x[c]) - mean[c]) * b[c] + k[c]), to[c]);
      }
    } else {
      const Pixel* __restrict gradient = rows.gradient + row * channels;
      for (int64_t c = 0; c < channels; ++c) {
        const float value = number(x[c]);
        const float whole = number(gradient[c]);
        const float g = mapped(value, scale[c], offset[c]) > 0 ? whole : 0.0F;
        put(g * a[c] + ((value - mean[c]) * b[c] + k[c]), to[c]);
      }
    }
  }
}

// One function of each per instruction set.

KELVIN_VECTOR_CLONES
void plain_moments(const float* x, int64_t channels, const float* shift, int64_t begin, int64_t end,
                   double* sums) {
  sum_rows(MomentSums<float>{.x = x, .channels = channels, .shift = shift}, channels, begin, end,
           sums);
}

KELVIN_VECTOR_CLONES
void plain_moments(const Bf16* x, int64_t channels, const float* shift, int64_t begin, int64_t end,
                   double* sums) {
  sum_rows(MomentSums<Bf16>{.x = x, .channels = channels, .shift = shift}, channels, begin, end,
           sums);
}

KELVIN_VECTOR_CLONES
void plain_norm_relu(const float* x, int64_t channels, const ChannelMap& map, const float* added,
                     int64_t begin, int64_t end, float* y) {
  map_rows(x, channels, map, added, begin, end, y);
}

KELVIN_VECTOR_CLONES
void plain_norm_relu(const Bf16* x, int64_t channels, const ChannelMap& map, const Bf16* added,
                     int64_t begin, int64_t end, Bf16* y) {
  map_rows(x, channels, map, added, begin, end, y);
}

KELVIN_VECTOR_CLONES
void plain_gradient_sums(const NormReluGradient<float>& rows, int64_t begin, int64_t end,
                         float* masked, double* sums) {
  sum_gradients(rows, begin, end, masked, sums);
}

KELVIN_VECTOR_CLONES
void plain_gradient_sums(const NormReluGradient<Bf16>& rows, int64_t begin, int64_t end,
                         Bf16* masked, double* sums) {
  sum_gradients(rows, begin, end, masked, sums);
}

KELVIN_VECTOR_CLONES
void plain_gradient(const NormReluGradient<float>& rows, const GradientMap& map,
                    const float* masked, int64_t begin, int64_t end, float* result) {
  map_gradients(rows, map, masked, begin, end, result);
}

KELVIN_VECTOR_CLONES
void plain_gradient(const NormReluGradient<Bf16>& rows, const GradientMap& map, const Bf16* masked,
                    int64_t begin, int64_t end, Bf16* result) {
  map_gradients(rows, map, masked, begin, end, result);
}

}  // namespace

template <class Pixel>
void moments_of_rows(const Pixel* x, int64_t channels, const float* shift, int64_t begin,
                     int64_t end, double* sums) {
  if (suits_norm_relu_vectors(channels)) {
    moments_of_vectors(x, channels, shift, begin, end, sums);
  } else {
    plain_moments(x, channels, shift, begin, end, sums);
  }
}

template <class Pixel>
void norm_relu_rows(const Pixel* x, int64_t channels, const ChannelMap& map, const Pixel* added,
                    int64_t begin, int64_t end, Pixel* y) {
  if (suits_norm_relu_vectors(channels)) {
    norm_relu_vectors(x, channels, map, added, begin, end, y);
  } else {
    plain_norm_relu(x, channels, map, added, begin, end, y);
  }
}

template <class Pixel>
void gradient_sums_of_rows(const NormReluGradient<Pixel>& rows, int64_t begin, int64_t end,
                           Pixel* masked, double* sums) {
  if (suits_norm_relu_vectors(rows.channels)) {
    gradient_sums_of_vectors(rows, begin, end, masked, sums);
  } else {
    plain_gradient_sums(rows, begin, end, masked, sums);
  }
}

template <class Pixel>
void gradient_rows(const NormReluGradient<Pixel>& rows, const GradientMap& map, const Pixel* masked,
                   int64_t begin, int64_t end, Pixel* result) {
  if (suits_norm_relu_vectors(rows.channels)) {
    gradient_vectors(rows, map, masked, begin, end, result);
  } else {
    plain_gradient(rows, map, masked, begin, end, result);
  }
}

template void moments_of_rows(const float*, int64_t, const float*, int64_t, int64_t, double*);
template void moments_of_rows(const Bf16*, int64_t, const float*, int64_t, int64_t, double*);
template void norm_relu_rows(const float*, int64_t, const ChannelMap&, const float*, int64_t,
                             int64_t, float*);
template void norm_relu_rows(const Bf16*, int64_t, const ChannelMap&, const Bf16*, int64_t, int64_t,
                             Bf16*);
template void gradient_sums_of_rows(const NormReluGradient<float>&, int64_t, int64_t, float*,
                                    double*);
template void gradient_sums_of_rows(const NormReluGradient<Bf16>&, int64_t, int64_t, Bf16*,
                                    double*);
template void gradient_rows(const NormReluGradient<float>&, const GradientMap&, const float*,
                            int64_t, int64_t, float*);
template void gradient_rows(const NormReluGradient<Bf16>&, const GradientMap&, const Bf16*, int64_t,
                            int64_t, Bf16*);

}  // namespace kelvin
