#pragma once

#include <functional>

#include "kelvin/experiment/checkpoint.h"
#include "kelvin/experiment/run_log.h"
#include "kelvin/experiment/run_settings.h"
#include "kelvin/runs/run_folder.h"
#include "kelvin/train/train.h"

namespace kelvin {

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
