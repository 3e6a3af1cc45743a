#include "kelvin/train/ema.h"

#include <torch/torch.h>

#include <algorithm>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/model/weights.h"
#include "kelvin/ops/optimizer_step.h"
#include "kelvin/ops/reference_ops.h"

namespace kelvin {
namespace {

// A kernel can walk over both in the order of their memory.
template <class Scalar>
bool lie_alike(const torch::Tensor& average, const torch::Tensor& weight) {
  return weight.device().is_cpu() && average.device().is_cpu() &&
         weight.scalar_type() == c10::CppTypeToScalarType<Scalar>::value &&
         average.scalar_type() == weight.scalar_type() && weight.is_non_overlapping_and_dense() &&
         average.strides() == weight.strides();
}

// Adds them, if they are of its kind.
template <class Scalar>
bool add_to(std::vector<AveragedTensor<Scalar>>& tensors, const torch::Tensor& average,
            const torch::Tensor& weight) {
  if (uses_reference_ops() || !lie_alike<Scalar>(average, weight)) return false;
  tensors.push_back({.average = average.data_ptr<Scalar>(),
                     .newest = weight.data_ptr<Scalar>(),
                     .length = weight.numel()});
  return true;
}

}  // namespace

WeightEma::WeightEma(Model& model, double decay) : decay_(decay), weights_(weights_of(model)) {
  check(decay > 0 && decay < 1, "weight average: decay must be in (0, 1), got ", decay);
  for (const auto& [name, weight] : weights_) average_[name] = weight.detach().clone();
}

void WeightEma::update() {
  torch::NoGradGuard no_grad;
  ++steps_;
  const auto steps = static_cast<double>(steps_);
  const double decay = std::min(decay_, (1 + steps) / (10 + steps));
  std::vector<AveragedTensor<float>> floats;  // those that one pass over all of them can do
  std::vector<AveragedTensor<double>> doubles;
  for (auto& [name, average] : average_) {
    const auto& weight = weights_.at(name);
    if (add_to(floats, average, weight) || add_to(doubles, average, weight)) continue;
    if (average.is_floating_point()) {
      average.lerp_(weight, 1 - decay);
    } else {
      average.copy_(weight);
    }
  }
  average_step(floats, 1 - decay);
  average_step(doubles, 1 - decay);
}

void WeightEma::exchange() {
  torch::NoGradGuard no_grad;
  for (auto& [name, average] : average_) {
    auto& weight = weights_.at(name);
    const auto kept = weight.detach().clone();
    weight.copy_(average);
    average.copy_(kept);
  }
}

void WeightEma::restore(const NamedTensors& average, int64_t steps) {
  torch::NoGradGuard no_grad;
  copy_weights(average, average_, "weight average");
  steps_ = steps;
}

}  // namespace kelvin
