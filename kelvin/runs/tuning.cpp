#include "kelvin/runs/tuning.h"

#include <algorithm>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

using List = Value::array_t;

int64_t tune_number(const Values& values, const char* key, int64_t smallest,
                    const std::string& origin) {
  const auto found = values.find(key);
  const bool is_there = found != values.end();
  check(is_there && found->second.is_number_integer() && found->second.get<int64_t>() >= smallest,
        origin, ": tune.", key, ": must be a whole number from ", smallest, ", got ",
        is_there ? found->second.dump() : "nothing");
  return found->second.get<int64_t>();
}

bool is_finite_number(const Value& value) {
  return value.is_number() && std::isfinite(value.get<double>());
}

std::vector<Value> tune_grid(const std::string& key, const Value& list, const std::string& origin) {
  const auto where = origin + ": tune." + key;
  check(list.is_array() && list.size() >= 2 &&
            std::all_of(list.begin(), list.end(), is_finite_number),
        where, ": must be a list of at least two numbers to choose from, got ", list.dump());
  std::vector<Value> grid(list.begin(), list.end());
  std::sort(grid.begin(), grid.end());
  check(std::adjacent_find(grid.begin(), grid.end()) == grid.end(), where,
        ": must hold each number once, got ", list.dump());
  return grid;
}

}  // namespace

TuneSettings tune_settings(const Values& values, const std::string& origin) {
  TuneSettings tune{.samples = tune_number(values, "samples", 1, origin),
                    .seed = tune_number(values, "seed", 0, origin)};
  std::vector<std::string> keys;
  for (const auto& [key, value] : values) {
    if (key != "samples" && key != "seed") keys.push_back(key);
  }
  check(keys.size() == 1, origin, ": tune: must name one key to choose, names ",
        keys.empty() ? "none" : join(keys, ", "));
  tune.key = keys.front();
  tune.grid = tune_grid(tune.key, values.at(tune.key), origin);
  return tune;
}

Config trial_config(Config run, const TuneSettings& tune, const Value& value) {
  run.set(tune.key, value);
  run.set("seed", tune.seed);
  run.set("data.validation_samples", tune.samples);
  run.set("data.test_on", "validation");
  run.set("measure.names", List{"accuracy"});
  run.set("measure.steps_per_decade", 0);
  // What tells the choice nothing, nor do the data it needs.
  for (const char* key : {"data.ood", "measure.detectors", "measure.during"}) {
    run.set(key, List{});
  }
  for (const char* key : {"measure.near", "measure.far"}) {
    if (run.has(key)) run.set(key, List{});
  }
  return run;
}

TrialResult trial_result(const Run& trial, double value) {
  TrialResult result{.value = value};
  if (trial.status == RunStatus::failed) {
    result.failure = trial.metadata.value("failure", std::string("failed"));
    return result;
  }
  const auto found =
      std::find_if(trial.readings.begin(), trial.readings.end(), [](const Reading& reading) {
        return reading.name == "accuracy" && reading.split == "test" && reading.ood.empty();
      });
  check(found != trial.readings.end() && std::isfinite(found->value), trial.path.string(),
        ": must hold the accuracy on the images held out, to choose a setting by");
  result.accuracy = found->value;
  return result;
}

std::optional<size_t> best_trial(const std::vector<TrialResult>& results) {
  std::optional<size_t> best;
  for (size_t i = 0; i < results.size(); ++i) {
    const auto& [value, accuracy, failure] = results[i];
    if (!accuracy && failure.empty()) return std::nullopt;
    if (!accuracy) continue;
    const bool is_better = !best || *accuracy > *results[*best].accuracy ||
                           (*accuracy == *results[*best].accuracy && value < results[*best].value);
    if (is_better) best = i;
  }
  return best;
}

}  // namespace kelvin
