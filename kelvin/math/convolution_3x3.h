#pragma once

#include <torch/types.h>

namespace kelvin {

// Whether convolution_3x3 computes this convolution with stride 1 and padding 1: maps of at least
// 4x4 in float32 or 2x2 in bfloat16 on a CPU with the vectors they want, weights of 3x3 in float32,
// channels in multiples of 16.
bool suits_convolution_3x3(const torch::Tensor& input, const torch::Tensor& weight);

// torch::conv2d(input, weight, bias, 1, 1) in channels-last by Winograd's algorithm, see
// winograd_4x4.h and winograd_2x2.h.  `bias` may be undefined.  Bits depend on the number of
// threads.
torch::Tensor convolution_3x3(const torch::Tensor& input, const torch::Tensor& weight,
                              const torch::Tensor& bias = {});

}  // namespace kelvin
