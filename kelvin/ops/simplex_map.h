#pragma once

#include <torch/types.h>

#include <functional>
#include <string>

#include "kelvin/core/registry.h"
#include "kelvin/core/settings.h"

namespace kelvin {

// Logits [..., n] to probabilities of the same shape and type: over the last dimension they are not
// negative and sum to 1.  A logit of -inf is masked: its probability is exactly 0; a row of nothing
// else is all zeros.  A temperature is the caller's: logits / T.
using SimplexMap = std::function<torch::Tensor(const torch::Tensor& logits)>;

struct SimplexMapEntry {
  std::string summary;
  std::string reference;
  std::function<SimplexMap(Settings&)> make;
};

Registry<SimplexMapEntry>& simplex_maps();

// Throws unless these are logits [..., n] with n at least 1; `name` opens the message.
void check_logits(const std::string& name, const torch::Tensor& logits);

// The map that `rule` is where it is defined: rows with a finite logit, in single precision or
// better.  `name` opens messages.
SimplexMap simplex_map(const std::string& name, const SimplexMap& rule);

}  // namespace kelvin
