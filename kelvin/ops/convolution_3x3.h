#pragma once

#include <torch/types.h>

#include "kelvin/kernels/winograd.h"

namespace kelvin {

template <class Float>
WinogradWeights<Float> layout_of(const torch::Tensor& weight) {
  return {.data = weight.data_ptr<float>(),
          .output_step = weight.stride(0),
          .row_step = weight.stride(2),
          .column_step = weight.stride(3),
          .input_step = weight.stride(1)};
}

// Convolutions in channels-last by Winograd's algorithm, on all cores and without autograd: F(2x2,
// 3x3) of bfloat16 feature maps, F(4x4, 3x3) of float32 ones.  Weights are float32, and so is their
// gradient.

// `bias` may be null.
torch::Tensor winograd_forward(const torch::Tensor& maps, int64_t outputs,
                               const WinogradWeights<const float>& weights, const float* bias);

// Of the shape and in the layout of `weight`.
torch::Tensor winograd_weight_gradient(const torch::Tensor& weight, const torch::Tensor& maps,
                                       const torch::Tensor& gradients);

// Whether convolution_3x3 computes this convolution with stride 1 and padding 1: feature maps
// of at least 4x4 in float32 or 2x2 in bfloat16 on a CPU with the vectors they want, weights of 3x3
// in float32, channels in multiples of 16.
bool suits_convolution_3x3(const torch::Tensor& input, const torch::Tensor& weight);

// torch::conv2d(input, weight, bias, 1, 1) in channels-last by Winograd's algorithm, see
// winograd_4x4.h and winograd_2x2.h.  `bias` may be undefined.  Bits depend on the number of
// threads.
torch::Tensor convolution_3x3(const torch::Tensor& input, const torch::Tensor& weight,
                              const torch::Tensor& bias = {});

}  // namespace kelvin
