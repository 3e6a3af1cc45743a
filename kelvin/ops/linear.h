#pragma once

#include <torch/types.h>

namespace kelvin {

// Whether parallel_linear computes this one: rows of one floating-point type on a CPU, and enough
// of them that several cores pay.
bool suits_parallel_linear(const torch::Tensor& input, const torch::Tensor& weight);

// torch::linear(input, weight, bias) and its gradients, each core with a part of the products of
// its own.  The BLAS, left to spread them, has threads of its own that wait for LibTorch's and
// LibTorch's for them, which at 128 rows costs more than the products.  `bias` may be undefined.
torch::Tensor parallel_linear(const torch::Tensor& input, const torch::Tensor& weight,
                              const torch::Tensor& bias = {});

// Whether blocked_linear computes this one: rows of float32 or float64 on a CPU.
bool suits_blocked_linear(const torch::Tensor& input, const torch::Tensor& weight);

// torch::linear(input, weight, bias) for evaluation, without gradients.  Cut into blocks by its
// shape alone, each computed by one thread: the BLAS rounds a row differently in a block of another
// size, and what is measured must not depend on the number of threads.  `bias` may be undefined.
torch::Tensor blocked_linear(const torch::Tensor& input, const torch::Tensor& weight,
                             const torch::Tensor& bias = {});

// Whether bfloat16_linear computes this layer: float32 weights, inputs and outputs in multiples of
// 32, on a CPU that multiplies bfloat16.
bool suits_bfloat16_linear(const torch::Tensor& input, const torch::Tensor& weight);

// torch::linear(input, weight, bias) with products of bfloat16 and sums of float32.  `input`
// [..., inputs] is rounded, the result is bfloat16; weights and their gradient are float32.  `bias`
// may be undefined.  Bits of the gradients of weight and bias depend on the number of threads.
torch::Tensor bfloat16_linear(const torch::Tensor& input, const torch::Tensor& weight,
                              const torch::Tensor& bias = {});

}  // namespace kelvin
