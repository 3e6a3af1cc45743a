#pragma once

#include "kelvin/kernels/bf16.h"
#include "kelvin/kernels/winograd.h"

namespace kelvin {

// 3x3 convolutions with padding 1 and stride 1 of bfloat16 feature maps by Winograd's F(2x2, 3x3):
// 16 products for 4 outputs instead of 36.  Factors are rounded to bfloat16 once more after their
// transform; larger tiles would need fewer products, but lose too much precision.

// Whether this processor has products of bfloat16 in the vectors that the kernels are written for.
bool has_winograd_2x2();

// Writes `results` [images, height, width, outputs]; `bias` [outputs] may be null.
void winograd_2x2_forward(const WinogradShape& shape, const Bf16* maps,
                          const WinogradWeights<const float>& weights, const float* bias,
                          Bf16* results, const WinogradWorkers& workers);

// Writes the gradient of the weights, given those of the results.  Bits depend on the number of
// threads.
void winograd_2x2_weight_gradient(const WinogradShape& shape, const Bf16* maps,
                                  const Bf16* gradients, const WinogradWeights<float>& gradient,
                                  const WinogradWorkers& workers);

}  // namespace kelvin
