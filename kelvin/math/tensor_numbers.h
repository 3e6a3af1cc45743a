#pragma once

#include <torch/types.h>

#include "kelvin/math/brain_float.h"

namespace kelvin {

// Where the numbers of a tensor begin, as kernels call their type: LibTorch's bfloat16 is
// BrainFloat there.
template <class Number = BrainFloat>
Number* numbers(const torch::Tensor& tensor) {
  return static_cast<Number*>(tensor.data_ptr());
}

}  // namespace kelvin
