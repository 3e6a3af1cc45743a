#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// Ends a network after the first layer whose linear probe is nearly as good as that of its last
// layer, or after the one that the request names, and puts the probe behind it.  `run` is a run
// folder, or empty for the weights in the request's `init.pretrained`.  Returns what it gives and
// what it costs beside the whole network.
nlohmann::ordered_json truncate(const std::filesystem::path& run, const TruncateRequest& request,
                                const RunContext& context);

}  // namespace kelvin
