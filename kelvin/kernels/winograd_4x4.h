#pragma once

#include "kelvin/kernels/winograd.h"

namespace kelvin {

// 3x3 convolutions with padding 1 and stride 1 of float32 feature maps by Winograd's F(4x4, 3x3)
// (Lavin and Gray, arXiv 1509.09308): 36 products for 16 outputs instead of 144.  Transformed
// numbers are larger than their differences, so errors are some ten times those of plain sums.

// Whether this processor has the vectors that the kernels are written for.
bool has_winograd_4x4();

// Writes `results` [images, height, width, outputs]; `bias` [outputs] may be null.
void winograd_4x4_forward(const WinogradShape& shape, const float* maps,
                          const WinogradWeights<const float>& weights, const float* bias,
                          float* results, const WinogradWorkers& workers);

// Writes the gradient of the weights, given those of the results.  Bits depend on the number of
// threads.
void winograd_4x4_weight_gradient(const WinogradShape& shape, const float* maps,
                                  const float* gradients, const WinogradWeights<float>& gradient,
                                  const WinogradWorkers& workers);

}  // namespace kelvin
