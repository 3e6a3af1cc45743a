#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kelvin {

// One tensor as a file of weights holds it.
struct StoredTensor {
  std::string name = {};
  std::string dtype = {};           // as safetensors names it: "F32"
  std::vector<int64_t> shape = {};  // empty for a number
  std::string_view bytes = {};      // row by row, little-endian
};

// All tensors of a file in the order of their bytes, and the text that came with them.
struct StoredTensors {
  std::vector<StoredTensor> tensors = {};
  std::map<std::string, std::string> metadata = {};

  // What the tensors' bytes point into.
  std::shared_ptr<const std::string> file = {};
  std::shared_ptr<const std::deque<std::string>> copies = {};
};

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
