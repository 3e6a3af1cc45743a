#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// Networks for max retrieval, a seed each, as many at once as there are cores.
struct TrainRetrievalRequest {
  static constexpr auto kTask = "train_retrieval";
  using Result = nlohmann::ordered_json;

  Config config = {};                 // the section "retrieval"
  std::vector<int64_t> seeds = {};    // instead of retrieval.seed
  std::filesystem::path output = {};  // a folder for ATTENTION,seed=N.safetensors
};

// A network that lies there already is left alone if its settings are those asked for; others are
// an Error.  Of each one row: file, seed, steps, seconds, and means over the last steps of loss and
// accuracy.  What was finished before an interrupt stays.
nlohmann::ordered_json train_retrieval(const TrainRetrievalRequest& request,
                                       const RunContext& context);

}  // namespace kelvin
