#pragma once

#include <nlohmann/json.hpp>

#include "kelvin/experiment/compute_api.h"
#include "kelvin/runs/config.h"

namespace kelvin {

// What a run of a resolved config would cost and start from: parameters, layers, multiply-adds;
// minutes, memory and disk as a few steps on this machine let expect; the norm of the logits at
// step 0 beside what is predicted for it.
nlohmann::ordered_json plan(const Config& resolved, const RunContext& context);

// The norms of the logits at step 0 for each of the seeds, on `samples` training images (0: as many
// as a few seconds allow): one object for each, as in the plan.
nlohmann::ordered_json initial_norms(const Config& config, const std::vector<int64_t>& seeds,
                                     int64_t samples, const RunContext& context);

}  // namespace kelvin
