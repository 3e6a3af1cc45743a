#include "kelvin/train/weight_average.h"

#include <torch/torch.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/model/weights.h"

namespace kelvin {

WeightAverage::WeightAverage(Model& model, double decay)
    : decay_(decay), weights_(weights_of(model)) {
  check(decay > 0 && decay < 1, "weight average: decay must be in (0, 1), got ", decay);
  for (const auto& [name, weight] : weights_) average_[name] = weight.detach().clone();
}

void WeightAverage::update() {
  torch::NoGradGuard no_grad;
  ++steps_;
  const auto steps = static_cast<double>(steps_);
  const double decay = std::min(decay_, (1 + steps) / (10 + steps));
  for (auto& [name, average] : average_) {
    const auto& weight = weights_.at(name);
    if (average.is_floating_point()) {
      average.lerp_(weight, 1 - decay);
    } else {
      average.copy_(weight);
    }
  }
}

void WeightAverage::exchange() {
  torch::NoGradGuard no_grad;
  for (auto& [name, average] : average_) {
    auto& weight = weights_.at(name);
    const auto kept = weight.detach().clone();
    weight.copy_(average);
    average.copy_(kept);
  }
}

void WeightAverage::restore(const NamedTensors& average, int64_t steps) {
  torch::NoGradGuard no_grad;
  copy_weights(average, average_, "weight average");
  steps_ = steps;
}

}  // namespace kelvin
