#pragma once

#include <cstdint>

#include "kelvin/kernels/bf16.h"

namespace kelvin {

// Kernels of batch_norm_relu over rows of channels without gaps, which are the pixels of maps in
// channels-last.  Ranges [begin, end) are of rows.  Sums are of float32 over few rows and of double
// over those.  Pixels are float or Bf16; whatever they are, numbers between two maps are
// float32.

// Sums of x - shift and of its square over rows: [2, channels].
template <class Pixel>
void moments_of_rows(const Pixel* x, int64_t channels, const float* shift, int64_t begin,
                     int64_t end, double* sums);

// What a channel is multiplied by, and what is added then.
struct ChannelMap {
  const float* scale = nullptr;   // [channels]
  const float* offset = nullptr;  // [channels]
};

// y = relu(x * scale + offset + added); `added` may be null.
template <class Pixel>
void norm_relu_rows(const Pixel* x, int64_t channels, const ChannelMap& map, const Pixel* added,
                    int64_t begin, int64_t end, Pixel* y);

template <class Pixel>
struct NormReluGradient {
  const Pixel* x = nullptr;
  const Pixel* gradient = nullptr;  // of y
  const Pixel* y = nullptr;  // if something was added; otherwise null, for it is known from x then
  int64_t channels = 0;
  ChannelMap map = {};
  const float* mean = nullptr;  // [channels]
};

// With g the gradient of y where y is positive and 0 elsewhere: the sums of g and of g * (x - mean)
// over rows, [2, channels].  If something was added, g is written to `masked`; otherwise that is
// null.
template <class Pixel>
void gradient_sums_of_rows(const NormReluGradient<Pixel>& rows, int64_t begin, int64_t end,
                           Pixel* masked, double* sums);

// g * of_gradient + (x - mean) * of_x + constant, by channels: the gradient of x.
struct GradientMap {
  const float* of_gradient = nullptr;
  const float* of_x = nullptr;
  const float* constant = nullptr;
};
template <class Pixel>
void gradient_rows(const NormReluGradient<Pixel>& rows, const GradientMap& map, const Pixel* masked,
                   int64_t begin, int64_t end, Pixel* result);

}  // namespace kelvin
