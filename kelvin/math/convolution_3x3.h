#pragma once

#include <torch/types.h>

namespace kelvin {

// Whether convolution_3x3 computes this convolution with stride 1 and padding 1: float32 on a CPU
// with the vectors it wants, 3x3, channels in multiples of 16, maps of at least 4x4.
bool suits_convolution_3x3(const torch::Tensor& input, const torch::Tensor& weight);

// torch::conv2d(input, weight, bias, 1, 1) in channels-last by Winograd's algorithm, see
// winograd_kernels.h: three times as fast with many channels.  `bias` may be undefined.  Bits
// depend on the number of threads.
torch::Tensor convolution_3x3(const torch::Tensor& input, const torch::Tensor& weight,
                              const torch::Tensor& bias = {});

}  // namespace kelvin
