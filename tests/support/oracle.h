#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>
#include <map>
#include <string>

#include "kelvin/core/npz_file.h"
#include "kelvin/math/named_tensors.h"
#include "tests/support/python.h"

namespace kelvin {

inline const std::map<std::string, torch::ScalarType>& types_by_dtype() {
  static const std::map<std::string, torch::ScalarType> types = {{"f4", torch::kFloat32},
                                                                 {"f8", torch::kFloat64},
                                                                 {"i8", torch::kInt64},
                                                                 {"i4", torch::kInt32},
                                                                 {"u1", torch::kUInt8}};
  return types;
}

inline Array array_of(const torch::Tensor& tensor) {
  const auto values = tensor.contiguous();
  Array array{.dtype = "", .shape = values.sizes().vec(), .bytes = {}};
  for (const auto& [dtype, type] : types_by_dtype()) {
    if (type == values.scalar_type()) array.dtype = dtype;
  }
  array.bytes.assign(static_cast<const char*>(values.data_ptr()), values.nbytes());
  return array;
}

inline torch::Tensor tensor_of(const Array& array) {
  auto tensor = torch::empty(array.shape, types_by_dtype().at(array.dtype));
  std::memcpy(tensor.data_ptr(), array.bytes.data(), array.bytes.size());
  return tensor;
}

// Shows `inputs` to a Python script as `x["name"]`; what it puts into `out` comes
// back.  NumPy is there as np.  A script that fails, or no Python, fails the test.
inline NamedTensors oracle(const std::string& script, const NamedTensors& inputs) {
  const TemporaryFolder folder;
  Arrays arrays;
  for (const auto& [name, tensor] : inputs) arrays[name] = array_of(tensor);
  write_npz(folder / "in.npz", arrays);
  python_output("import sys\nimport numpy as np\nx = dict(np.load(sys.argv[1]))\nout = {}\n" +
                    script + "\nnp.savez(sys.argv[2], **out)\n",
                {folder / "in.npz", folder / "out.npz"});
  NamedTensors outputs;
  for (const auto& [name, array] : read_npz(folder / "out.npz")) outputs[name] = tensor_of(array);
  return outputs;
}

}  // namespace kelvin
