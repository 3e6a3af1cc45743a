#include "kelvin/experiment/run/stall_detector.h"

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
  ++sums_.steps;
  sums_.entropy += state.entropy;
  sums_.loss += state.loss;
  sums_.accuracy += state.accuracy;
  if (state.step % span_ == 0) judge(state);
}

void StallDetector::judge(const TrainState& state) {
  const auto steps = static_cast<double>(sums_.steps);
  const double share = sums_.entropy / steps / uniform_entropy_;
  const int64_t spans = share > kUniformShare ? sums_.uniform_spans + 1 : 0;
  bool is_stalled = sums_.is_stalled;
  if (spans == kSpansToStall && !is_stalled) {
    is_stalled = true;
    log_.add_note(
        state.step,
        fmt::format(
            "step {}: training sits on the plateau of uniform outputs: entropy {} of ln C, loss {} "
            "(ln C = {}), accuracy {} at T = {}, lr = {}. Try a larger lr or "
            "--lr-scale-with-t sqrt, more epochs, a lower temperature, or "
            "train.temperature_schedule=warm from a low one",
            state.step, percent(share), short_number(sums_.loss / steps, 5),
            short_number(uniform_entropy_, 5), percent(sums_.accuracy / steps),
            short_number(state.temperature), short_number(state.learning_rate, 3)));
  } else if (is_stalled && share < kLeftShare) {
    is_stalled = false;
    log_.add_note(state.step,
                  fmt::format("step {}: training left the plateau of uniform outputs", state.step));
  }
  sums_ = {.uniform_spans = spans, .is_stalled = is_stalled};
}

}  // namespace kelvin
