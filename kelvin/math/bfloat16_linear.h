#pragma once

#include <torch/types.h>

namespace kelvin {

// Whether bfloat16_linear computes this layer: float32 weights, inputs and outputs in multiples of
// 32, on a CPU that multiplies bfloat16.
bool suits_bfloat16_linear(const torch::Tensor& input, const torch::Tensor& weight);

// torch::linear(input, weight, bias) with products of bfloat16 and sums of float32.  `input`
// [..., inputs] is rounded, the result is bfloat16; weights and their gradient are float32.  `bias`
// may be undefined.  Bits of the gradients of weight and bias depend on the number of threads.
torch::Tensor bfloat16_linear(const torch::Tensor& input, const torch::Tensor& weight,
                              const torch::Tensor& bias = {});

}  // namespace kelvin
