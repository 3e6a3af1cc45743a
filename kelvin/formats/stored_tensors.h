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

}  // namespace kelvin
