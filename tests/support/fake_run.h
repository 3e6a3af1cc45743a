#pragma once

#include <filesystem>

#include "kelvin/runs/run_folder.h"

namespace kelvin {

// A small finished run on disk, as if it had been trained.
inline void write_fake_run(const std::filesystem::path& folder, double temperature, int64_t seed,
                           double solution_rank) {
  Config config;
  config.set("seed", seed);
  config.set("data.name", "glyphs100");
  config.set("model.name", "mlp");
  config.set("train.temperature", temperature);
  config.set("train.epochs", 2);
  const auto run = RunFolder::create(folder, config, {{"command", "kelvin train"}});
  for (int64_t epoch = 0; epoch <= 2; ++epoch) {
    run.append_metrics({{"step", 10 * epoch},
                        {"epoch", epoch},
                        {"loss", 3.0 - static_cast<double>(epoch)},
                        {"train_accuracy", 0.3 * static_cast<double>(epoch)},
                        {"test_accuracy", 0.25 * static_cast<double>(epoch)},
                        {"solution_rank", solution_rank}});
  }
  run.add_readings(
      {{.name = "accuracy", .value = 0.5, .split = "test", .definition = {{"samples", 100}}},
       {.name = "solution_rank",
        .value = solution_rank,
        .split = "test",
        .definition = {
            {"matrix", "logits"}, {"bias", true}, {"shift_free", true}, {"gamma", 1e-3}}}});
  run.set_status(RunStatus::finished);
}

// A run that has only just begun.
inline RunFolder new_run(const std::filesystem::path& path) {
  return RunFolder::create(path, Config({{"seed", 3}, {"train.lr", 0.5}}), {{"commit", "abc"}});
}

}  // namespace kelvin
