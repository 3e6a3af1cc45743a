#pragma once

#include <vector>

#include "kelvin/data/dataset.h"
#include "kelvin/experiment/compute_api.h"
#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/evaluate/evaluation.h"
#include "kelvin/model/model.h"

namespace kelvin {

// Runs the model once over each split that somebody needs, feeds every measure
// and detector of the settings, and collects what they say.
Measured measure_model(Model& model, const Dataset& dataset, const std::vector<Dataset>& ood,
                       const RunSettings& settings, const RunContext& context);

}  // namespace kelvin
