#pragma once

#include <string>
#include <vector>

#include "kelvin/runs/config.h"
#include "kelvin/runs/recipe.h"

namespace kelvin {

// Whether a run of the resolved config ends with a reading of that name, or a comparison makes one
// of its metrics.  Asked before training, so that a claim on what nobody measures is refused.
bool is_measured(const std::string& reading, const Config& resolved);

// Why a run of the resolved config has no reading of the layer, detector, OOD data or gamma that
// the claim names; empty if it has one.  `layers` are those of its model.
std::string missing_place(const Claim& claim, const Config& resolved,
                          const std::vector<std::string>& layers);

}  // namespace kelvin
