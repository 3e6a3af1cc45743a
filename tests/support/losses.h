#pragma once

#include <string>

#include "kelvin/train/loss.h"

namespace kelvin {

// As a config makes it: `values` are the section's, such as loss_gamma.
inline Loss made_loss(const std::string& name, const Values& values = {}) {
  Settings settings("train", values);
  Loss loss;
  settings.read_prefixed("loss_", [&](Settings& own) { loss = losses().find(name).make(own); });
  settings.reject_unknown_keys();
  return loss;
}

}  // namespace kelvin
