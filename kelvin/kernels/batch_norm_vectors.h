#pragma once

#include "kelvin/kernels/batch_norm_rows.h"

namespace kelvin {

// The kernels of batch_norm_rows.h for processors that have vectors of sixteen floats and bfloat16,
// where what belongs to a channel stays in registers while rows go by.

// Whether they can do so many channels on this processor.
bool suits_norm_relu_vectors(int64_t channels);

template <class Pixel>
void moments_of_vectors(const Pixel* x, int64_t channels, const float* shift, int64_t begin,
                        int64_t end, double* sums);

template <class Pixel>
void norm_relu_vectors(const Pixel* x, int64_t channels, const ChannelMap& map, const Pixel* added,
                       int64_t begin, int64_t end, Pixel* y);

template <class Pixel>
void gradient_sums_of_vectors(const NormReluGradient<Pixel>& rows, int64_t begin, int64_t end,
                              Pixel* masked, double* sums);

template <class Pixel>
void gradient_vectors(const NormReluGradient<Pixel>& rows, const GradientMap& map,
                      const Pixel* masked, int64_t begin, int64_t end, Pixel* result);

}  // namespace kelvin
