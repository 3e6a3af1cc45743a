#pragma once

#include <vector>

#include "kelvin/data/dataset.h"
#include "kelvin/experiment/compute_api.h"
#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/model/model.h"

namespace kelvin {

// What a run is trained and measured on.
struct RunData {
  Dataset own;
  std::vector<Dataset> ood;
};

// An Error if a dataset is not there or lacks a split that a measure needs.
RunData load_run_data(const RunSettings& settings, const RunContext& context);

// An Error if a measure cannot look at this model, or not when it is asked to, or cannot be fitted
// to a dataset because that has too few classes or shows too few training samples.
void check_measures(const RunSettings& settings, Model& model, const RunData& data);

}  // namespace kelvin
