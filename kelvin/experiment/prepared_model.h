#pragma once

#include <memory>

#include "kelvin/data/dataset.h"
#include "kelvin/experiment/compute_api.h"
#include "kelvin/experiment/run_settings.h"
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

}  // namespace kelvin
