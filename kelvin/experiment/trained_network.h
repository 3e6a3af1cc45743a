#pragma once

#include <filesystem>
#include <memory>

#include "kelvin/experiment/run_data.h"

namespace kelvin {

// A network to look at, with what it was trained on.
struct TrainedNetwork {
  RunSettings settings;
  RunData data;
  std::shared_ptr<Model> model;
};

// The last weights of a run; `changes` replace settings of its config.
TrainedNetwork open_run(const std::filesystem::path& run, const Config& changes,
                        const RunContext& context);

// The weights in the file `init.pretrained` of a whole config.
TrainedNetwork open_weights(const Config& config, const RunContext& context);

}  // namespace kelvin
