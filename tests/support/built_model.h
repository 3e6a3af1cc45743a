#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "kelvin/model/model.h"

namespace kelvin {

// Of all registered models but those whose network is in a file.
inline std::vector<std::string> built_models() {
  auto names = models().names();
  std::erase_if(names, [](const auto& name) { return models().find(name).is_of_file; });
  return names;
}

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
