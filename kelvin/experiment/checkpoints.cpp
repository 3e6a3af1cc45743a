#include "kelvin/experiment/checkpoints.h"

#include <torch/torch.h>

#include <utility>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

// An update may overflow after its loss was found to be finite.
void check_finite(const TrainState& state, const TrainSnapshot& snapshot) {
  for (const auto& [name, tensor] : snapshot.weights) {
    check(!tensor.is_floating_point() || torch::isfinite(tensor).all().item<bool>(), "train: '",
          name, "' is not finite after step ", state.step, " (T = ", state.temperature,
          ", lr = ", state.rate, "), so the checkpoint before it is kept; try a smaller lr or a ",
          "longer warm-up");
  }
}

}  // namespace

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
  save(state, /*is_best=*/false);
}

void Checkpoints::after_epoch(const TrainState& state) {
  const double accuracy = facts_.test_accuracy();
  const bool is_best = accuracy > best_accuracy_;
  if (is_best) best_accuracy_ = accuracy;
  save(state, is_best);
}

void Checkpoints::at_stop(const TrainState& state) { save(state, /*is_best=*/false); }

void Checkpoints::save(const TrainState& state, bool is_best) {
  // What training goes on from is not written again: in the middle of that there would be none.
  const bool is_new = state.step != saved_step_;
  if (is_new) {
    auto snapshot = state.snapshot();
    check_finite(state, snapshot);
    write_checkpoint(folder_.path(), {.training = std::move(snapshot),
                                      .seconds = facts_.seconds(),
                                      .sizes = log_.sizes(),
                                      .stalls = facts_.stalls(),
                                      .best_accuracy = best_accuracy_});
  }
  // First the best: if only that is done, the last one still has the accuracy before it.
  if (is_best) link_checkpoint(folder_.path(), CheckpointLink::best, state.step);
  if (is_new) link_checkpoint(folder_.path(), CheckpointLink::last, state.step);
  saved_step_ = state.step;
  if (!settings_.keeps_all) remove_unlinked_checkpoints(folder_.path());
}

}  // namespace kelvin
