#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <map>
#include <string>

#include "kelvin/experiment/run/run_store.h"
#include "kelvin/formats/npz_file.h"
#include "kelvin/ops/tensors.h"
#include "tests/support/python.h"

namespace kelvin {

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
