#pragma once

#include <torch/types.h>

#include "kelvin/core/npz_file.h"

namespace kelvin {

// Tensors as NumPy arrays and back; both copy.  Of the types that an npz of ours can hold.
Array array_of(const torch::Tensor& tensor);
torch::Tensor tensor_of(const Array& array);

}  // namespace kelvin
