#include "kelvin/experiment/stall_detector.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kelvin/core/text.h"

namespace kelvin {
namespace {

constexpr double kUniformShare = 0.995;
constexpr double kLeftShare = 0.99;  // lower, so that the border is not crossed again and again
constexpr int64_t kSpansToStall = 2;

std::string percent(double share) { return short_number(100 * share, 3) + " %"; }

}  // namespace

StallDetector::StallDetector(int64_t classes, const RunLog& log)
    : uniform_entropy_(std::log(static_cast<double>(classes))), log_(log) {}

void StallDetector::before_training(const TrainState& state) {
  span_ = std::clamp<int64_t>(state.total_steps / 20, 10, 500);
}

void StallDetector::after_step(const TrainState& state) {
  ++steps_;
  entropy_ += state.entropy;
  loss_ += state.loss;
  accuracy_ += state.accuracy;
  // At fixed steps, wherever a run was resumed.
  if (state.step % span_ == 0) judge(state);
}

void StallDetector::judge(const TrainState& state) {
  const auto steps = static_cast<double>(steps_);
  const double share = entropy_ / steps / uniform_entropy_;
  uniform_spans_ = share > kUniformShare ? uniform_spans_ + 1 : 0;
  if (uniform_spans_ == kSpansToStall && !is_stalled_) {
    is_stalled_ = true;
    log_.add_note(
        state.step,
        fmt::format(
            "step {}: training sits on the plateau of uniform outputs: entropy {} of ln C, loss {} "
            "(ln C = {}), accuracy {} at T = {}, lr = {}. Try a larger lr or "
            "--lr-scale-with-t sqrt, more epochs, a lower temperature, or "
            "train.temperature_schedule=warm from a low one",
            state.step, percent(share), short_number(loss_ / steps, 5),
            short_number(uniform_entropy_, 5), percent(accuracy_ / steps),
            short_number(state.temperature), short_number(state.rate, 3)));
  }
  if (is_stalled_ && share < kLeftShare) {
    is_stalled_ = false;
    log_.add_note(state.step,
                  fmt::format("step {}: training left the plateau of uniform outputs", state.step));
  }
  steps_ = 0;
  entropy_ = loss_ = accuracy_ = 0;
}

}  // namespace kelvin
