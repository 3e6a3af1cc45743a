#include "kelvin/experiment/checkpoints.h"

#include <utility>

namespace kelvin {

Checkpoints::Checkpoints(const RunFolder& folder, const CheckpointSettings& settings,
                         const RunLog& log, RunFacts facts)
    : folder_(folder), settings_(settings), log_(log), facts_(std::move(facts)) {}

void Checkpoints::start_from(const Checkpoint& checkpoint) {
  saved_step_ = checkpoint.training.step;
  best_accuracy_ = checkpoint.best_accuracy;
}

void Checkpoints::after_step(const TrainState& state) {
  if (settings_.steps == 0 || state.step % settings_.steps != 0) return;
  if (state.step % state.steps_per_epoch == 0) return;  // after_epoch does
  save(state);
}

void Checkpoints::after_epoch(const TrainState& state) {
  const double accuracy = facts_.test_accuracy();
  const bool is_best = accuracy > best_accuracy_;
  if (is_best) best_accuracy_ = accuracy;
  save(state);
  if (is_best) link_checkpoint(folder_.path(), CheckpointLink::best, state.step);
  if (!settings_.keeps_all) remove_unlinked_checkpoints(folder_.path());
}

void Checkpoints::at_stop(const TrainState& state) { save(state); }

void Checkpoints::save(const TrainState& state) {
  if (state.step == saved_step_) return;
  write_checkpoint(folder_.path(), {.training = state.snapshot(),
                                    .seconds = facts_.seconds(),
                                    .sizes = log_.sizes(),
                                    .best_accuracy = best_accuracy_});
  link_checkpoint(folder_.path(), CheckpointLink::last, state.step);
  saved_step_ = state.step;
  if (!settings_.keeps_all) remove_unlinked_checkpoints(folder_.path());
}

}  // namespace kelvin
