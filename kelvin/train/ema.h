#pragma once

#include "kelvin/model/model.h"
#include "kelvin/ops/tensors.h"

namespace kelvin {

// The exponential moving average (EMA) of a model's weights and buffers over its steps, which often
// does better than the last weights.
class WeightEma {
 public:
  // Starts from the weights as they are.  After n steps the newest weights count by
  // 1 - min(decay, (1 + n) / (10 + n)): the start must not outweigh a short training.
  WeightEma(Model& model, double decay);

  void update();

  // Exchanges the model's weights and their average; twice is as before.
  void exchange();

  const NamedTensors& tensors() const { return average_; }
  int64_t steps() const { return steps_; }
  void restore(const NamedTensors& average, int64_t steps);

 private:
  double decay_;
  int64_t steps_ = 0;
  NamedTensors weights_;  // the model's own
  NamedTensors average_;
};

}  // namespace kelvin
