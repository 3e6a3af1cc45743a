#pragma once

#include <torch/types.h>

#include <string>

#include "kelvin/core/npz_file.h"

namespace kelvin {

// Tensors as NumPy arrays and back; both copy.  PyTorch has no whole numbers without a sign above
// one byte: those of two bytes become int32, of four and eight int64, exactly; one that int64 does
// not hold is an Error that begins with `where`.
Array array_of(const torch::Tensor& tensor);
torch::Tensor tensor_of(const Array& array, const std::string& where = "tensor_of");

}  // namespace kelvin
