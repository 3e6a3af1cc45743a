#pragma once

#include <torch/types.h>

#include <string>

#include "kelvin/core/reading.h"

namespace kelvin {

// The ranks of a matrix that need no threshold, from its singular values in any order:
// effective_rank, rankme, stable_rank and participation_ratio.  Each is `like` with another name
// (after `prefix`), its value and its formula in the definition.  None of a zero matrix, of which
// they are undefined.
Readings rank_readings(const torch::Tensor& singular_values, const Reading& like,
                       const std::string& prefix = "");

}  // namespace kelvin
