#include "kelvin/experiment/step_scalars.h"

namespace kelvin {
namespace {

constexpr int64_t kInterval = 10;  // steps

}  // namespace

void StepScalars::after_step(const TrainState& state) {
  ++steps_;
  loss_ += state.loss;
  entropy_ += state.entropy;
  accuracy_ += state.accuracy;
  if (state.step % kInterval != 0) return;
  const auto steps = static_cast<double>(steps_);
  log_.add_scalars(state.step, {{"batch/loss", loss_ / steps},
                                {"batch/entropy", entropy_ / steps},
                                {"batch/accuracy", accuracy_ / steps},
                                {"batch/lr", state.rate},
                                {"batch/temperature", state.temperature}});
  steps_ = 0;
  loss_ = entropy_ = accuracy_ = 0;
}

}  // namespace kelvin
