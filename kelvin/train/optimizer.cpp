#include "kelvin/train/optimizer.h"

#include <torch/torch.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/model/head.h"

namespace kelvin {
namespace {

using torch::optim::AdamOptions;
using torch::optim::AdamParamState;
using torch::optim::OptimizerParamGroup;
using torch::optim::SGDOptions;
using torch::optim::SGDParamState;

constexpr auto kMomentum = "/momentum";
constexpr auto kMean = "/mean";
constexpr auto kMeanSquare = "/mean_square";
constexpr auto kSteps = "/steps";
constexpr auto kLogTemperature = "log_temperature";

bool is_sgd(OptimizerKind kind) {
  return kind == OptimizerKind::sgd || kind == OptimizerKind::sgdw;
}

bool is_coupled(OptimizerKind kind) {
  return kind == OptimizerKind::sgd || kind == OptimizerKind::adam;
}

// The keys of a parameter's state in LibTorch.
std::string key_of(const torch::Tensor& parameter) {
  return c10::guts::to_string(parameter.unsafeGetTensorImpl());
}

std::unique_ptr<torch::optim::OptimizerOptions> group_options(const OptimizerOptions& options,
                                                              double decay) {
  constexpr double kRate = 1;  // set before every step
  if (is_sgd(options.kind)) {
    return std::make_unique<SGDOptions>(SGDOptions(kRate)
                                            .momentum(options.momentum)
                                            .nesterov(options.nesterov)
                                            .weight_decay(decay));
  }
  return std::make_unique<AdamOptions>(AdamOptions(kRate)
                                           .betas({options.beta1, options.beta2})
                                           .eps(options.epsilon)
                                           .weight_decay(decay));
}

std::unique_ptr<torch::optim::Optimizer> optimizer_for(
    const OptimizerOptions& options, const std::vector<OptimizerParamGroup>& groups) {
  if (is_sgd(options.kind)) {
    return std::make_unique<torch::optim::SGD>(
        groups, static_cast<const SGDOptions&>(*group_options(options, 0)));
  }
  return std::make_unique<torch::optim::Adam>(
      groups, static_cast<const AdamOptions&>(*group_options(options, 0)));
}

const torch::Tensor& required(const NamedTensors& state, const std::string& name) {
  const auto found = state.find(name);
  check(found != state.end(), "optimizer: its state has no '", name,
        "'; is it of another optimizer?");
  return found->second;
}

}  // namespace

OptimizerKind optimizer_of(const std::string& name) {
  if (name == "sgd") return OptimizerKind::sgd;
  if (name == "sgdw") return OptimizerKind::sgdw;
  if (name == "adam") return OptimizerKind::adam;
  if (name == "adamw") return OptimizerKind::adamw;
  check(false, "train.optimizer: must be sgd, sgdw, adam or adamw, got '", name, "'");
  return OptimizerKind::sgd;
}

Optimizer::Optimizer(Model& model, const OptimizerOptions& options,
                     const torch::Tensor& log_temperature)
    : options_(options) {
  std::vector<torch::Tensor> head;
  if (model.head() != nullptr) head = model.head()->tensors();
  check(options.head_rate_scale == 1 || !head.empty(),
        "optimizer: this model does not tell what its head is");
  std::vector<OptimizerParamGroup> groups;
  // A group for each parameter: they differ in decay and rate.
  const auto add = [&](const std::string& name, const torch::Tensor& parameter, double decay,
                       double rate_scale) {
    parts_.push_back({name, parameter});
    rate_scales_.push_back(rate_scale);
    groups.emplace_back(std::vector<torch::Tensor>{parameter}, group_options(options, decay));
  };
  for (const auto& item : model.named_parameters()) {
    const auto& parameter = item.value();
    const bool is_head = std::any_of(head.begin(), head.end(), [&](const torch::Tensor& each) {
      return each.is_same(parameter);
    });
    const bool decays = is_coupled(options.kind) && (options.decays_vectors || parameter.dim() > 1);
    add(item.key(), parameter, decays ? options.weight_decay : 0,
        is_head ? options.head_rate_scale : 1);
  }
  if (log_temperature.defined()) add(kLogTemperature, log_temperature, 0, 1);
  optimizer_ = optimizer_for(options, groups);
}

void Optimizer::zero_gradients() { optimizer_->zero_grad(); }

void Optimizer::shrink_weights(double rate) {
  torch::NoGradGuard no_grad;
  for (size_t i = 0; i < parts_.size(); ++i) {
    auto& [name, parameter] = parts_[i];
    if (name == kLogTemperature || (!options_.decays_vectors && parameter.dim() <= 1)) continue;
    parameter.mul_(1 - rate * rate_scales_[i] * options_.weight_decay);
  }
}

void Optimizer::step(double rate) {
  if (options_.clip_norm > 0) {
    std::vector<torch::Tensor> parameters;
    for (const auto& part : parts_) parameters.push_back(part.parameter);
    torch::nn::utils::clip_grad_norm_(parameters, options_.clip_norm);
  }
  if (!is_coupled(options_.kind) && options_.weight_decay > 0) shrink_weights(rate);
  auto& groups = optimizer_->param_groups();
  for (size_t i = 0; i < groups.size(); ++i) {
    groups[i].options().set_lr(rate * rate_scales_[i]);
  }
  optimizer_->step();
}

NamedTensors Optimizer::state() const {
  NamedTensors tensors;
  const auto& states = optimizer_->state();
  for (const auto& [name, parameter] : parts_) {
    const auto found = states.find(key_of(parameter));
    if (found == states.end()) continue;  // before the first step, or without momentum
    if (is_sgd(options_.kind)) {
      const auto& own = static_cast<const SGDParamState&>(*found->second);
      if (own.momentum_buffer().defined()) tensors[name + kMomentum] = own.momentum_buffer();
    } else {
      const auto& own = static_cast<const AdamParamState&>(*found->second);
      tensors[name + kMean] = own.exp_avg();
      tensors[name + kMeanSquare] = own.exp_avg_sq();
      tensors[name + kSteps] = torch::tensor(own.step(), torch::kInt64);
    }
  }
  return tensors;
}

void Optimizer::restore(const NamedTensors& state) {
  if (state.empty()) return;
  const auto like = [](const torch::Tensor& stored, const torch::Tensor& parameter) {
    check(stored.sizes() == parameter.sizes(), "optimizer: its state must be of shape ",
          parameter.sizes(), ", is of ", stored.sizes());
    auto copy = torch::empty_like(parameter).detach();
    copy.copy_(stored);
    return copy;
  };
  auto& states = optimizer_->state();
  for (const auto& [name, parameter] : parts_) {
    if (is_sgd(options_.kind)) {
      auto own = std::make_unique<SGDParamState>();
      own->momentum_buffer(like(required(state, name + kMomentum), parameter));
      states[key_of(parameter)] = std::move(own);
    } else {
      auto own = std::make_unique<AdamParamState>();
      own->exp_avg(like(required(state, name + kMean), parameter));
      own->exp_avg_sq(like(required(state, name + kMeanSquare), parameter));
      own->step(required(state, name + kSteps).item<int64_t>());
      states[key_of(parameter)] = std::move(own);
    }
  }
}

}  // namespace kelvin
