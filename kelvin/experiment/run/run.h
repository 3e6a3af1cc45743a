#pragma once

#include <filesystem>

#include "kelvin/experiment/compute_api.h"
#include "kelvin/runs/config.h"

namespace kelvin {

// One run, from data to readings, in the new folder `output`.
void run(const Config& config, const std::filesystem::path& output,
         const nlohmann::ordered_json& metadata, const RunContext& context);

// Goes on with a run that was stopped or killed, from its last checkpoint, to the same bits as if
// it had not been.  `metadata` tells of this process; unless `is_inexact`, arithmetic must be what
// it was.
void resume(const std::filesystem::path& path, const nlohmann::ordered_json& metadata,
            bool is_inexact, const RunContext& context);

// Measures the last weights of a run again; adds readings and curves to its folder.
Readings measure_run(const std::filesystem::path& path, const MeasureRequest& request,
                     const RunContext& context);

// Measures the weights in the file `init.pretrained` of the request's settings.
Readings measure_weights(const MeasureRequest& request, const RunContext& context);

}  // namespace kelvin
