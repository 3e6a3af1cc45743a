#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/run/run_log.h"
#include "kelvin/experiment/run/stall_detector.h"
#include "kelvin/runs/run_folder.h"
#include "kelvin/train/train.h"

namespace kelvin {

// A moment of a run: checkpoints/step-N/ with model.safetensors (the weights to use),
// training.safetensors (the rest of what training needs to go on) and training.json.
struct Checkpoint {
  TrainSnapshot training = {};
  double seconds = 0;                         // of training so far
  std::map<std::string, int64_t> sizes = {};  // of the run's growing files, see run_log.h
  StallDetector::Sums stalls = {};
  double best_accuracy = -1;  // of all checkpoints so far
};

// Writes it aside and moves it to its place: an interruption leaves the earlier ones as they were.
void write_checkpoint(const std::filesystem::path& run, const Checkpoint& checkpoint);

// The links checkpoints/last and checkpoints/best.
enum class CheckpointLink { last, best };

// Points the link at the checkpoint of a step, from one moment to the next.
void link_checkpoint(const std::filesystem::path& run, CheckpointLink link, int64_t step);

// Makes the links that a copy of the run lost, or has folders in the place of; `last` is what
// last_checkpoint() gave.  Training goes on only after it.
void restore_links(const std::filesystem::path& run, const Checkpoint& last);

// Removes the checkpoints that no link points at.
void remove_unlinked_checkpoints(const std::filesystem::path& run);

// What checkpoints/last points at, or is a copy of; the newest checkpoint if there is no such link;
// nothing if there is none either.
std::optional<Checkpoint> last_checkpoint(const std::filesystem::path& run);

// The weights of the same checkpoint.
std::filesystem::path last_weights(const std::filesystem::path& run);

// The temperature that training had there; nothing if that is not known.
std::optional<double> saved_temperature(const std::filesystem::path& run);

// What a checkpoint tells of the run besides training itself.
struct RunFacts {
  std::function<double()> seconds;        // of training so far
  std::function<double()> test_accuracy;  // by which the best one is chosen
  std::function<StallDetector::Sums()> stalls;
};

// Saves the state of training after each epoch, at multiples of some steps if wanted, and when it
// is stopped.
// Must come after all observers that write to the log.
class Checkpoints : public TrainObserver {
 public:
  Checkpoints(const RunFolder& folder, const CheckpointSettings& settings, const RunLog& log,
              RunFacts facts);

  // The run goes on from here.
  void start_from(const Checkpoint& checkpoint);

  void after_step(const TrainState& state) override;
  void after_epoch(const TrainState& state) override;
  void at_stop(const TrainState& state) override;

 private:
  void save(const TrainState& state, bool is_best);

  const RunFolder& folder_;
  const CheckpointSettings settings_;
  const RunLog& log_;
  const RunFacts facts_;
  int64_t saved_step_ = -1;
  double best_accuracy_ = -1;
};

}  // namespace kelvin
