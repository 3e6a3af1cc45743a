#pragma once

#include <torch/types.h>

#include "kelvin/math/winograd_maps.h"

namespace kelvin {

// Convolutions of float32 maps in channels-last by Winograd's F(4x4, 3x3), spread over all cores:
// 36 products for 16 outputs instead of 144.  Three times as fast with many channels.

// `bias` may be null.
torch::Tensor winograd_4x4(const WinogradShape& shape, const torch::Tensor& maps,
                           const WinogradWeights<const float>& weights, const float* bias);

// Of the shape and in the layout of `weight`.
torch::Tensor winograd_4x4_gradient_of(const torch::Tensor& weight, const WinogradShape& shape,
                                       const torch::Tensor& maps, const torch::Tensor& gradients);

}  // namespace kelvin
