#pragma once

#include <filesystem>
#include <memory>

#include "kelvin/data/dataset.h"
#include "kelvin/experiment/compute_api.h"
#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/run/run_data.h"
#include "kelvin/model/model.h"

namespace kelvin {

// The network as it is right before the first step: drawn from the run's seed, or with pretrained
// weights, its logits scaled to the wanted norm.  Who looks on is told which of several copies of
// the weights were taken.
std::shared_ptr<Model> prepared_model(const RunSettings& settings, const Dataset& dataset,
                                      const RunContext& context = {});

// An Error that names the settings at fault if its logits, or these over the temperature, are not
// finite on a few training images: no rate could mend that.
void check_initial_logits(const RunSettings& settings, Model& model, const Dataset& dataset);

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
