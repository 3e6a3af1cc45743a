#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kelvin/formats/pickle_value.h"
#include "kelvin/formats/stored_tensors.h"

namespace kelvin {

// A tensor as a view of a storage: element (i, j, ...) lies at offset + i * strides[0] +
// j * strides[1] + ...; offset and strides count elements.
struct StridedView {
  std::string_view storage = {};
  uint64_t element_bytes = 1;
  int64_t offset = 0;
  std::vector<int64_t> shape = {};  // its bytes are counted by stored_tensor_bytes without an Error
  std::vector<int64_t> strides = {};

  int64_t size() const;        // number of elements
  bool is_contiguous() const;  // they lie row by row in the storage already
};

// An Error that begins with `where` unless all elements lie inside of the storage.
void check_inside(const StridedView& view, const std::string& where);

// Of a contiguous view that lies inside: its bytes in the storage.
std::string_view contiguous_bytes(const StridedView& view);

// Of any view that lies inside: a copy of its elements row by row.
std::string copied_rows(const StridedView& view);

// The bytes of each storage by its key.
using TorchStorages = std::map<std::string_view, std::string_view>;

// The tensors of a pickled dict and of the dicts in it, "outer.inner", in the order of the dicts.
// Other values are left out; texts, numbers and booleans of the outermost dict go to the metadata,
// shortened.  What takes memory, copies of tensors that do not lie row by row and values that are
// shared many times, is limited in proportion to `file_bytes`.  The views point into `storages`.
StoredTensors torch_tensors(const Pickle& pickle, const TorchStorages& storages,
                            uint64_t file_bytes, const std::string& where);

}  // namespace kelvin
