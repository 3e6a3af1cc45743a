#pragma once

#include <string>

#include "kelvin/runs/config.h"

namespace kelvin {

// Whether a run of the resolved config ends with a reading of that name, or a comparison makes one
// of its metrics.  Asked before training, so that a claim on what nobody measures is refused.
bool is_measured(const std::string& reading, const Config& resolved);

}  // namespace kelvin
