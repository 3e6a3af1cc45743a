#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kelvin/formats/stored_tensors.h"

namespace kelvin {

// Bytes of one element of a dtype of safetensors; 0 for a dtype that is not known.
uint64_t stored_element_bytes(std::string_view dtype);

// Bytes that a tensor of this dtype and shape has.  An Error that begins with `where` for a dtype
// that is not known and a shape that no tensor can have.
uint64_t stored_tensor_bytes(std::string_view dtype, const std::vector<int64_t>& shape,
                             const std::string& where);

// An Error unless the tensor has the bytes that its shape needs, and its booleans are 0 or 1: a
// C++ bool that is neither is undefined behaviour.
void check_stored_tensor(const StoredTensor& tensor, const std::string& where);

// An Error if two tensors have the same name.
void check_names_differ(std::vector<std::string_view> names, const std::string& where);

}  // namespace kelvin
