#pragma once

#include <torch/types.h>

#include <string>

#include "kelvin/ops/simplex_map.h"

namespace kelvin {

// What the registered map of this name makes of `logits`.
inline torch::Tensor mapped(const std::string& name, const torch::Tensor& logits,
                            const Values& values = {}, double temperature = 1) {
  Settings settings("here", values);
  const auto map = simplex_maps().find(name).make(settings);
  settings.reject_unknown_keys();
  return map(logits, temperature);
}

}  // namespace kelvin
