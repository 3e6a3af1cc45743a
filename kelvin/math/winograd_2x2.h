#pragma once

#include <torch/types.h>

#include "kelvin/math/winograd_maps.h"

namespace kelvin {

// Convolutions of bfloat16 maps in channels-last by Winograd's F(2x2, 3x3), spread over all cores:
// 16 products for 4 outputs instead of 36.  Weights are float32, and so is their gradient.

// `bias` may be null.
torch::Tensor winograd_2x2(const WinogradShape& shape, const torch::Tensor& maps,
                           const WinogradWeights<const float>& weights, const float* bias);

// Of the shape and in the layout of `weight`.
torch::Tensor winograd_2x2_gradient_of(const torch::Tensor& weight, const WinogradShape& shape,
                                       const torch::Tensor& maps, const torch::Tensor& gradients);

}  // namespace kelvin
