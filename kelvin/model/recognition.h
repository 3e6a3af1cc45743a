#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kelvin/core/settings.h"
#include "kelvin/ops/tensors.h"

namespace kelvin {

// An architecture whose parameters have the names and shapes of a file of weights.
struct Recognised {
  std::string model;       // its name in the registry
  Values settings;         // of "model", those that differ from the usual ones
  int64_t classes = 0;     // rows of the classifier
  int64_t channels = 0;    // of the images; 0: the file does not tell
  int64_t image_side = 0;  // 0: the file does not tell
  int64_t tensors = 0;     // how many names and shapes agreed
};

// All registered models that fit, those of the usual width alone if there are any: where two remain
// nothing in the file tells them apart, such as the number of heads of a transformer.
std::vector<Recognised> recognised_models(const NamedTensors& stored);

// The one that fits.  An Error, which `where` opens, if there is none or more than one.
Recognised recognised_model(const NamedTensors& stored, const std::string& where);

}  // namespace kelvin
