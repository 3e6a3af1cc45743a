#include "kelvin/experiment/progress_observer.h"

#include "kelvin/core/text.h"

namespace kelvin {
namespace {

constexpr double kInterval = 0.1;  // seconds

}  // namespace

void ProgressObserver::before_training(const TrainState& state) {
  images_before_ = state.images;
  start_ = context_.seconds();
  last_ = start_;
}

void ProgressObserver::after_step(const TrainState& state) {
  const double now = context_.seconds();
  const bool is_last = state.step == state.total_steps;
  if (now - last_ < kInterval && !is_last) return;
  last_ = now;
  context_.report_progress(
      {.phase = "train",
       .done = state.step,
       .total = state.total_steps,
       .images_per_second =
           now > start_ ? static_cast<double>(state.images - images_before_) / (now - start_) : 0,
       .note = "loss " + short_number(state.loss, 3)});
}

}  // namespace kelvin
