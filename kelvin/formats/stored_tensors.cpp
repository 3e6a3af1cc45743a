#include "kelvin/formats/stored_tensors.h"

#include <algorithm>
#include <array>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

struct StoredDtype {
  std::string_view name;
  uint64_t bytes;
};
constexpr std::array<StoredDtype, 10> kDtypes = {{{"F64", 8},
                                                  {"F32", 4},
                                                  {"F16", 2},
                                                  {"BF16", 2},
                                                  {"I64", 8},
                                                  {"I32", 4},
                                                  {"I16", 2},
                                                  {"I8", 1},
                                                  {"U8", 1},
                                                  {"BOOL", 1}}};
constexpr size_t kMostTensorAxes = 64;  // as in PyTorch's loops

}  // namespace

uint64_t stored_element_bytes(std::string_view dtype) {
  for (const auto& known : kDtypes) {
    if (known.name == dtype) return known.bytes;
  }
  return 0;
}

uint64_t stored_tensor_bytes(std::string_view dtype, const std::vector<int64_t>& shape,
                             const std::string& where) {
  uint64_t bytes = stored_element_bytes(dtype);
  check(bytes > 0, where,
        ": dtype must be F64, F32, F16, BF16, I64, I32, I16, I8, U8 or BOOL, is '",
        shown_text(dtype), "'");
  check(shape.size() <= kMostTensorAxes, where, ": shape must have at most ", kMostTensorAxes,
        " sizes, has ", shape.size());
  int64_t extent =
      static_cast<int64_t>(bytes);  // must not overflow even if a size of 0 leaves none
  for (const auto size : shape) {
    check(size >= 0, where, ": shape has a negative size");
    check(!__builtin_mul_overflow(extent, std::max<int64_t>(size, 1), &extent), where,
          ": shape is too large");
    bytes *= static_cast<uint64_t>(size);  // at most the extent
  }
  return bytes;
}

void check_stored_tensor(const StoredTensor& tensor, const std::string& where) {
  const auto bytes = stored_tensor_bytes(tensor.dtype, tensor.shape, where);
  check(bytes == tensor.bytes.size(), where, ": shape needs ", bytes, " bytes, has ",
        tensor.bytes.size());
  if (tensor.dtype != "BOOL") return;
  const bool are_booleans = std::all_of(tensor.bytes.begin(), tensor.bytes.end(),
                                        [](char byte) { return byte == 0 || byte == 1; });
  check(are_booleans, where, ": booleans must be 0 or 1");
}

void check_names_differ(std::vector<std::string_view> names, const std::string& where) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) check(false, where, ": has two tensors '", shown_text(*twice), "'");
}

}  // namespace kelvin
