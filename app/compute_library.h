#pragma once

#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// Loads libkelvin.so, and with it LibTorch, after preparing the process for `threads` threads.
// Only verbs that compute pay for this.
const ComputeApi& load_compute_library(int64_t threads);

}  // namespace kelvin
