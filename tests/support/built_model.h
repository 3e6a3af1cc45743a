#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>

#include "kelvin/model/model.h"

namespace kelvin {

// A registered model with these settings, in evaluation mode.  A setting that does not exist fails.
inline std::shared_ptr<Model> built_model(const std::string& name, const Values& values = {},
                                          const ModelShape& shape = {}, uint64_t seed = 0) {
  Settings settings("model", values);
  torch::manual_seed(seed);
  auto model = models().find(name).build(shape, settings);
  settings.reject_unknown_keys();
  model->eval();
  return model;
}

}  // namespace kelvin
