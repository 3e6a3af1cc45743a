#pragma once

#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/data/dataset.h"
#include "kelvin/experiment/compute_api.h"
#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/model/model.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {

struct Measured {
  Readings readings;
  NamedTensors curves;
  std::vector<Scores> scores;
};

// Thrown when the context asked to stop before everything was measured.
class MeasuringStopped : public Error {
 public:
  using Error::Error;
};

// Runs the model once over each split that somebody needs, feeds every measure
// and detector of the settings, and collects what they say.
Measured measure_model(Model& model, const Dataset& dataset, const std::vector<Dataset>& ood,
                       const RunSettings& settings, const RunContext& context);

}  // namespace kelvin
