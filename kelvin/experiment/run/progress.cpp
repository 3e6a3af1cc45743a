#include "kelvin/experiment/run/progress.h"

#include "kelvin/core/text.h"

namespace kelvin {
namespace {

constexpr double kSecondsBetween = 0.1;

}  // namespace

void ProgressObserver::before_training(const TrainState& state) {
  images_before_ = state.images;
  start_ = context_.seconds();
  last_ = start_;
}

void ProgressObserver::after_step(const TrainState& state) {
  const double now = context_.seconds();
  const bool is_last = state.step == state.total_steps;
  if (now - last_ < kSecondsBetween && !is_last) return;
  last_ = now;
  context_.report_progress(
      {.phase = "train",
       .done = state.step,
       .total = state.total_steps,
       .images_per_second =
           now > start_ ? static_cast<double>(state.images - images_before_) / (now - start_) : 0,
       .note = "loss " + short_number(state.loss, 3)});
}

namespace {

constexpr int64_t kStepsBetween = 10;

}  // namespace

void StepScalars::after_step(const TrainState& state) {
  ++steps_;
  loss_ += state.loss;
  entropy_ += state.entropy;
  accuracy_ += state.accuracy;
  if (state.step % kStepsBetween != 0) return;
  const auto steps = static_cast<double>(steps_);
  log_.add_scalars(state.step, {{"batch/loss", loss_ / steps},
                                {"batch/entropy", entropy_ / steps},
                                {"batch/accuracy", accuracy_ / steps},
                                {"batch/lr", state.learning_rate},
                                {"batch/temperature", state.temperature}});
  steps_ = 0;
  loss_ = entropy_ = accuracy_ = 0;
}

}  // namespace kelvin
