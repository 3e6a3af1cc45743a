#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kelvin/runs/run_folder.h"

namespace kelvin {

// In the body of a test the bare name would be GoogleTest's own Test::Run.
using Runs = std::vector<Run>;

// A finished run with a temperature and a seed, without any results.
inline Run bare_run(double temperature, int64_t seed) {
  Run run;
  run.path =
      "runs/t" + std::to_string(static_cast<int64_t>(temperature)) + "s" + std::to_string(seed);
  run.config.set("seed", seed);
  run.config.set("train.temperature", temperature);
  run.metadata = nlohmann::ordered_json::object();
  run.status = RunStatus::finished;
  return run;
}

inline Reading rank_reading(double rank, double gamma = 1e-3, bool shift_free = true) {
  return {.name = "solution_rank",
          .value = rank,
          .split = "test",
          .definition = {{"gamma", gamma}, {"shift_free", shift_free}, {"bias", true}}};
}

inline Run run_with_rank(double temperature, int64_t seed, double rank) {
  auto run = bare_run(temperature, seed);
  run.readings.push_back(rank_reading(rank));
  return run;
}

// Epoch 0 is the initialisation; the pairs are (training accuracy, rank) of the epochs after it.
inline void add_metrics(Run& run, const std::vector<std::pair<double, double>>& epochs) {
  run.metrics.push_back(
      {{"step", 0}, {"epoch", 0}, {"train_accuracy", 0.99}, {"solution_rank", 9}});
  for (size_t i = 0; i < epochs.size(); ++i) {
    run.metrics.push_back({{"step", 10 * (i + 1)},
                           {"epoch", i + 1},
                           {"loss", 1.0},
                           {"train_accuracy", epochs[i].first},
                           {"solution_rank", epochs[i].second}});
  }
}

// What a snapshot of the network during training has measured.
inline void add_snapshot(Run& run, int64_t step, const Readings& readings,
                         const std::vector<double>& logits_singular_values = {}) {
  run.trajectory.push_back({.step = step,
                            .epoch = static_cast<double>(step) / 10,
                            .logits_singular_values = logits_singular_values,
                            .readings = readings});
}

}  // namespace kelvin
