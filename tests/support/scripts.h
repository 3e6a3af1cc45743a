#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "tests/support/tensors.h"

namespace kelvin {

// A TorchScript module that owns others, each with a drawn weight and bias, as a program in Python
// would have written it.
class ScriptBuilder {
 public:
  ScriptBuilder() : module_("net") {}

  // Adds `name` with a weight of this shape, and a bias.
  ScriptBuilder& layer(const std::string& name, const std::vector<int64_t>& shape) {
    // Types of one unit must differ in name.
    torch::jit::Module own(name + "_layer", module_._ivalue()->compilation_unit());
    own.register_parameter("weight", 0.5 * noise(shape, ++seed_).to(torch::kFloat32), false);
    own.register_parameter("bias", noise({shape[0]}, ++seed_).to(torch::kFloat32), false);
    module_.register_module(name, own);
    return *this;
  }

  // `body` are the lines of forward(self, x).
  torch::jit::Module with_forward(const std::string& body) {
    module_.define("def forward(self, x):\n" + body);
    return module_;
  }

 private:
  torch::jit::Module module_;
  uint64_t seed_ = 0;
};

}  // namespace kelvin
