#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace kelvin
