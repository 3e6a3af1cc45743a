#include "kelvin/math/adam_regression.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <cmath>

#include "kelvin/core/check.h"

namespace kelvin {

AdamRegression::AdamRegression(const AdamOptions& options) : options_(options) {
  check(options.classes >= 2, "AdamRegression: needs at least 2 classes, got ", options.classes);
}

void AdamRegression::begin(int64_t dims) {
  const double bound = 1 / std::sqrt(static_cast<double>(dims));
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(options_.seed);
  const auto parameter = [&](at::IntArrayRef shape) {
    const auto value = at::empty(shape, torch::kFloat32).uniform_(-bound, bound, generator);
    return Parameter{value, torch::zeros_like(value), torch::zeros_like(value)};
  };
  weight_ = parameter({options_.classes, dims});
  bias_ = parameter({options_.classes});
}

void AdamRegression::train(const Minibatch& batch) {
  at::NoGradGuard no_grad;
  if (!weight_.value.defined()) begin(batch.features.size(1));
  const auto scores = torch::addmm(bias_.value, batch.features, weight_.value.t());
  if (!std::isfinite(scores.sum().item<double>())) {
    check(torch::isfinite(batch.features).all().item<bool>(), "features must be finite");
    check(false, "training diverged");
  }
  auto residuals = scores.softmax(1);
  const auto labels = batch.labels.unsqueeze(1);
  residuals.scatter_add_(1, labels, torch::full({1, 1}, -1.F).expand_as(labels));
  residuals.div_(batch.labels.size(0));
  ++steps_;
  update(weight_, residuals.t().matmul(batch.features));
  update(bias_, residuals.sum(0));
}

void AdamRegression::update(Parameter& parameter, const torch::Tensor& gradient) const {
  const auto steps = static_cast<double>(steps_);
  const double first_share = 1 - std::pow(options_.first_decay, steps);
  const double second_share = 1 - std::pow(options_.second_decay, steps);
  parameter.first.mul_(options_.first_decay).add_(gradient, 1 - options_.first_decay);
  parameter.second.mul_(options_.second_decay)
      .addcmul_(gradient, gradient, 1 - options_.second_decay);
  const auto scale = parameter.second.sqrt().div_(std::sqrt(second_share)).add_(options_.epsilon);
  parameter.value.addcdiv_(parameter.first, scale, -options_.rate / first_share);
}

LinearClassifier AdamRegression::classifier() const {
  check(weight_.value.defined(), "AdamRegression: nothing was shown");
  LinearClassifier result;
  result.weight = weight_.value.clone();
  result.bias = bias_.value.clone();
  result.iterations = steps_;
  return result;
}

int64_t AdamRegression::memory(const AdamOptions& options, int64_t dims) {
  return 5 * options.classes * dims * int64_t{sizeof(float)};
}

}  // namespace kelvin
