#pragma once

#include <torch/types.h>

namespace kelvin {

// Whether one_pass_gelu computes this: float32 or bfloat16 without gaps, on a CPU
// with the vectors it wants.
bool suits_one_pass_gelu(const torch::Tensor& x);

// torch::gelu(x), x times the normal distribution's probability below x, in one pass and another
// for its gradient.  Off by at most 3e-7 of x.
torch::Tensor one_pass_gelu(const torch::Tensor& x);

}  // namespace kelvin
