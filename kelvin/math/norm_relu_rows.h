#pragma once

#include <cstdint>

namespace kelvin {

// Kernels of batch_norm_relu over rows of channels without gaps, which are the pixels of maps in
// channels-last.  Ranges [begin, end) are of rows.  Sums are of float32 over few rows and of double
// over those.  Maps are of float or of bfloat16; whatever they are, numbers between two maps are
// float32.

// The upper half of a float.
struct BrainFloat {
  uint16_t bits = 0;
};

// Sums of x - shift and of its square over rows: [2, channels].
void moments_of_rows(const float* x, int64_t channels, const float* shift, int64_t begin,
                     int64_t end, double* sums);
void moments_of_rows(const BrainFloat* x, int64_t channels, const float* shift, int64_t begin,
                     int64_t end, double* sums);

// What a channel is multiplied by, and what is added then.
struct ChannelMap {
  const float* scale = nullptr;   // [channels]
  const float* offset = nullptr;  // [channels]
};

// y = relu(x * scale + offset + added); `added` may be null.
void norm_relu_rows(const float* x, int64_t channels, const ChannelMap& map, const float* added,
                    int64_t begin, int64_t end, float* y);
void norm_relu_rows(const BrainFloat* x, int64_t channels, const ChannelMap& map,
                    const BrainFloat* added, int64_t begin, int64_t end, BrainFloat* y);

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
void gradient_sums_of_rows(const NormReluGradient<float>& rows, int64_t begin, int64_t end,
                           float* masked, double* sums);
void gradient_sums_of_rows(const NormReluGradient<BrainFloat>& rows, int64_t begin, int64_t end,
                           BrainFloat* masked, double* sums);

// g * of_gradient + (x - mean) * of_x + constant, by channels: the gradient of x.
struct GradientMap {
  const float* of_gradient = nullptr;
  const float* of_x = nullptr;
  const float* constant = nullptr;
};
void gradient_rows(const NormReluGradient<float>& rows, const GradientMap& map, const float* masked,
                   int64_t begin, int64_t end, float* result);
void gradient_rows(const NormReluGradient<BrainFloat>& rows, const GradientMap& map,
                   const BrainFloat* masked, int64_t begin, int64_t end, BrainFloat* result);

}  // namespace kelvin
