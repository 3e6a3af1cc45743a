#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// The first layer, counted from 0, whose probe reaches `threshold` times the accuracy of the last
// one's; an Error if that is 0, which every layer reaches.
size_t sufficient_place(const std::vector<double>& accuracies, double threshold);

// Ends a network after the first layer whose linear probe is nearly as good as that of its last
// layer, or after the one that the request names, and puts the probe behind it.  `run` is a run
// folder, or empty for the weights in the request's `init.pretrained`.  Returns what it gives and
// what it costs beside the whole network.  An Error if the request asks for other probes than
// those of outputs by protocol diagnose, or for OOD data.
nlohmann::ordered_json truncate(const std::filesystem::path& run, const TruncateRequest& request,
                                const RunContext& context);

}  // namespace kelvin
