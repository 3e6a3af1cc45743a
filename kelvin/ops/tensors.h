#pragma once

#include <torch/types.h>

#include <map>
#include <string>

#include "kelvin/kernels/bf16.h"

namespace kelvin {

// What travels between machines and files: states of measures, weights of models.
using NamedTensors = std::map<std::string, torch::Tensor>;

// Where the numbers of a tensor begin, as kernels call their type: LibTorch's bfloat16 is
// Bf16 there.
template <class Number = Bf16>
Number* numbers(const torch::Tensor& tensor) {
  return static_cast<Number*>(tensor.data_ptr());
}

}  // namespace kelvin
