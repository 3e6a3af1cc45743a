#pragma once

#include "kelvin/experiment/run/run_log.h"
#include "kelvin/train/train.h"

namespace kelvin {

// Notes when training sits on the plateau where all outputs are uniform and the loss is ln C: at a
// high temperature, or with tiny logits, the gradients there are too small for the rate.
//
// It looks at spans of a twentieth of all steps, 10 to 500: two of them in a row in which the mean
// entropy of the outputs is above 99.5 % of ln C are a stall, and one below 99 % is its end.
class StallDetector : public TrainObserver {
 public:
  StallDetector(int64_t classes, const RunLog& log);

  void before_training(const TrainState& state) override;
  void after_step(const TrainState& state) override;

  bool is_stalled() const { return sums_.is_stalled; }

  // What it has seen, and goes on from.
  struct Sums {
    int64_t steps = 0;  // in the span under way
    double entropy = 0;
    double loss = 0;
    double accuracy = 0;
    int64_t uniform_spans = 0;  // in a row
    bool is_stalled = false;
  };
  const Sums& sums() const { return sums_; }
  void start_from(const Sums& sums) { sums_ = sums; }

 private:
  void judge(const TrainState& state);

  const double uniform_entropy_;
  const RunLog& log_;
  int64_t span_ = 0;
  Sums sums_;
};

}  // namespace kelvin
