#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "kelvin/core/registry.h"
#include "kelvin/core/settings.h"
#include "kelvin/ops/cross_entropy.h"

namespace kelvin {

// What training minimises, and what it wants of batch and network.
struct Loss {
  // Of logits [rows, outputs], targets [rows], and the temperature of this step as a single number
  // that may be learnt.
  using Function = std::function<LossValues(
      const torch::Tensor& logits, const torch::Tensor& targets, const torch::Tensor& temperature)>;
  Function function = {};
  // Of each image in a batch.  A loss of one view is a classifier's: its targets are labels.  That
  // of several compares them: its targets say which rows show the same image.
  int64_t views = 1;
  int64_t outputs = 0;  // the network is to have; 0: as many as there are classes

  bool classifies() const { return views == 1; }

  // The targets of a batch whose rows have these labels, see BatchOptions::views.
  torch::Tensor targets(const torch::Tensor& labels) const;

  LossValues operator()(const torch::Tensor& logits, const torch::Tensor& targets,
                        const torch::Tensor& temperature) const {
    return function(logits, targets, temperature);
  }
  explicit operator bool() const { return static_cast<bool>(function); }
};

struct LossEntry {
  std::string summary;    // one line
  std::string reference;  // where it comes from
  // Reads the loss's own settings, whose names start with "loss_" in a config.
  std::function<Loss(Settings& settings)> make;
};

Registry<LossEntry>& losses();

}  // namespace kelvin
