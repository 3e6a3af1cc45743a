#pragma once

#include <functional>
#include <string>

#include "kelvin/core/registry.h"
#include "kelvin/core/settings.h"
#include "kelvin/ops/cross_entropy.h"

namespace kelvin {

// Logits [samples, classes], labels [samples], and the temperature of this step as a single number
// that may be learnt.
using Loss = std::function<LossValues(const torch::Tensor& logits, const torch::Tensor& labels,
                                      const torch::Tensor& temperature)>;

struct LossEntry {
  std::string summary;    // one line
  std::string reference;  // where it comes from
  // Reads the loss's own settings, whose names start with "loss_" in a config.
  std::function<Loss(Settings& settings)> make;
};

Registry<LossEntry>& losses();

}  // namespace kelvin
