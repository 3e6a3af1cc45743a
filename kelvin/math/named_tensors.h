#pragma once

#include <torch/types.h>

#include <map>
#include <string>

namespace kelvin {

// What travels between machines and files: states of measures, weights of models.
using NamedTensors = std::map<std::string, torch::Tensor>;

}  // namespace kelvin
