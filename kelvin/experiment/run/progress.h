#pragma once

#include "kelvin/experiment/compute_api.h"
#include "kelvin/experiment/run/run_log.h"
#include "kelvin/train/train.h"

namespace kelvin {

// Tells the outside how far training is, a few times a second at most.
class ProgressObserver : public TrainObserver {
 public:
  explicit ProgressObserver(const RunContext& context) : context_(context) {}

  void before_training(const TrainState& state) override;
  void after_step(const TrainState& state) override;

 private:
  const RunContext& context_;
  int64_t images_before_ = 0;  // by an earlier process
  double start_ = 0;
  double last_ = 0;
};

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
