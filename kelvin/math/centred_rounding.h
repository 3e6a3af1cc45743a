#pragma once

#include <torch/types.h>

namespace kelvin {

// rows [count, dims] - mean [dims], both float32, to the nearest bfloat16, ties to even: in one
// pass, of which no float32 copy is made.  What is not finite stays so.
torch::Tensor centred_rounding(const torch::Tensor& rows, const torch::Tensor& mean);

}  // namespace kelvin
