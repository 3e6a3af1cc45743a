#pragma once

#include "kelvin/experiment/run_log.h"
#include "kelvin/train/train.h"

namespace kelvin {

// Loss, entropy, accuracy, rate and temperature of the batches, to TensorBoard: means over ten
// steps.
class StepScalars : public TrainObserver {
 public:
  explicit StepScalars(const RunLog& log) : log_(log) {}

  void after_step(const TrainState& state) override;

 private:
  const RunLog& log_;
  int64_t steps_ = 0;
  double loss_ = 0;
  double entropy_ = 0;
  double accuracy_ = 0;
};

}  // namespace kelvin
