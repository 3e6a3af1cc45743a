#include "app/cli/tuning.h"

#include <fmt/format.h>

#include "app/cli/child_runs.h"
#include "app/cli/recipe_runs.h"
#include "kelvin/core/check.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

constexpr auto kFinished = RunStatus::finished;

// What there is of one trial.
TrialResult found_trial(const PlannedRun& trial, double value, const Config& resolved,
                        const fs::path& root, const KeptReadings& kept) {
  if (const auto file = kept.find(resolved)) return trial_result(load_kept(*file), value);
  const auto folder = root / trial.name;
  try {
    const bool is_failure = has_failed(folder);
    const bool has_ended = is_failure || (is_run(folder) && load_status(folder) == kFinished);
    if (!has_ended) return {.value = value};
    const auto run = is_failure ? load_failed(root, trial.name) : load_run(folder);
    // What a recipe planned before it was changed is no answer now.
    if (config_hash(run.config) == config_hash(resolved)) return trial_result(run, value);
  } catch (const Error&) {  // a damaged folder: whoever trains there says what is wrong with it
  }
  return {.value = value};
}

std::string accuracy_text(const TrialResult& result, TableFormat format) {
  if (!result.accuracy) return "";
  return is_for_people(format) ? fmt::format("{:.2f} %", 100 * *result.accuracy)
                               : fmt::format("{}", *result.accuracy);
}

bool is_at_edge(const PlannedTuning& planned) {
  return planned.best && (*planned.best == 0 || *planned.best + 1 == planned.results.size());
}

}  // namespace

bool has_failed(const fs::path& run) {
  return is_run(run) && !is_locked(run) && load_status(run) == RunStatus::failed;
}

Run load_failed(const fs::path& root, const std::string& name) {
  auto run = load_run(root / name);
  const auto said = last_line_of(planned_log(root, name));
  if (!said.empty()) run.metadata["failure"] = said;
  return run;
}

PlannedTuning planned_tuning(const Tuning& tuning, const std::vector<Config>& resolved,
                             const fs::path& root, const KeptReadings& kept) {
  PlannedTuning planned{.tuning = tuning};
  for (size_t i = 0; i < tuning.trials.size(); ++i) {
    const auto& trial = tuning.trials[i];
    const auto value = trial.config.at(tuning.key).get<double>();
    planned.results.push_back(found_trial(trial, value, resolved.at(i), root, kept));
  }
  planned.best = best_trial(planned.results);
  return planned;
}

Table tuning_table(const std::vector<PlannedTuning>& tunings, TableFormat format) {
  Table table{.columns = {{"tuned"},
                          {"setting"},
                          {"value", Alignment::right},
                          {"validation accuracy", Alignment::right},
                          {"outcome"}}};
  for (const auto& [tuning, results, best] : tunings) {
    for (size_t i = 0; i < results.size(); ++i) {
      const auto& result = results[i];
      const auto outcome = best == i                 ? "chosen"
                           : !result.failure.empty() ? result.failure
                           : !result.accuracy        ? "missing"
                                                     : "";
      table.rows.push_back({tuning.name, tuning.key, fmt::format("{}", result.value),
                            accuracy_text(result, format), outcome});
    }
  }
  for (const auto& planned : tunings) {
    if (is_at_edge(planned)) {
      table.notes.push_back(
          planned.tuning.name +
          ": the chosen value is at the edge of its grid; a wider grid may have a "
          "better one.");
    }
  }
  return table;
}

}  // namespace kelvin
