#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kelvin/report/tables/table.h"
#include "kelvin/runs/kept_readings.h"
#include "kelvin/runs/recipe.h"
#include "kelvin/runs/tuning.h"

namespace kelvin {

// A tuning with what there is of its trials.
struct PlannedTuning {
  Tuning tuning;
  std::vector<TrialResult> results = {};  // of each trial
  std::optional<size_t> best = {};        // place of the one whose value is chosen
};

// Looks for the trials among kept readings, then in their folders below `root`.  `resolved` are
// their configs with nothing unset: a change of any setting makes other trials.
PlannedTuning planned_tuning(const Tuning& tuning, const std::vector<Config>& resolved,
                             const std::filesystem::path& root, const KeptReadings& kept);

// A run that failed, as a result: with what it said last, which stands in its log below `root`.
Run load_failed(const std::filesystem::path& root, const std::string& name);
// Whether training failed in the folder of a run, and nobody is at work in it.
bool has_failed(const std::filesystem::path& run);

// A row per trial: its accuracy on images held out of training, and which is chosen.
Table tuning_table(const std::vector<PlannedTuning>& tunings, TableFormat format);

}  // namespace kelvin
