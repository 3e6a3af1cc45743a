#include "kelvin/math/tensor_arrays.h"

#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

constexpr std::array<std::pair<const char*, torch::ScalarType>, 5> kTypes = {
    {{"f4", torch::kFloat32},
     {"f8", torch::kFloat64},
     {"i8", torch::kInt64},
     {"i4", torch::kInt32},
     {"u1", torch::kUInt8}}};

}  // namespace

Array array_of(const torch::Tensor& tensor) {
  const auto values = tensor.contiguous();
  const auto* const type = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& each) {
    return each.second == values.scalar_type();
  });
  check(type != kTypes.end(), "array_of: cannot store tensors of type ",
        c10::toString(values.scalar_type()));
  return {.dtype = type->first,
          .shape = values.sizes().vec(),
          .bytes = {static_cast<const char*>(values.data_ptr()), values.nbytes()}};
}

torch::Tensor tensor_of(const Array& array) {
  const auto* const type = std::find_if(
      kTypes.begin(), kTypes.end(), [&](const auto& each) { return each.first == array.dtype; });
  check(type != kTypes.end(), "tensor_of: there are no tensors of type '", array.dtype, "'");
  auto tensor = torch::empty(array.shape, type->second);
  std::memcpy(tensor.data_ptr(), array.bytes.data(), array.bytes.size());
  return tensor;
}

}  // namespace kelvin
