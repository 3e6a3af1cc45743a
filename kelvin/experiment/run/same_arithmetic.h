#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace kelvin {

// Throws unless the process that `now` tells of rounds as the one that `then` tells of: threads,
// instruction set, BLAS and LibTorch decide in which order numbers are summed.  Both are metadata
// of runs.
void check_same_arithmetic(const std::string& run, const nlohmann::ordered_json& then,
                           const nlohmann::ordered_json& now);

}  // namespace kelvin
