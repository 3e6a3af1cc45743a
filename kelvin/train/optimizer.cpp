#include "kelvin/train/optimizer.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/model/head.h"
#include "kelvin/ops/optimizer_step.h"
#include "kelvin/ops/reference_ops.h"

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

bool is_sgd(OptimizerKind kind) {
  return kind == OptimizerKind::sgd || kind == OptimizerKind::sgdw;
}

bool is_coupled(OptimizerKind kind) {
  return kind == OptimizerKind::sgd || kind == OptimizerKind::adam;
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

// Its numbers lie in memory without gaps, so that a kernel can walk over them in that order.
bool is_dense(const torch::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  return tensor.device().is_cpu() && tensor.layout() == torch::kStrided &&
         (type == torch::kFloat32 || type == torch::kFloat64) &&
         tensor.is_non_overlapping_and_dense();
}

// Whether the numbers of both, of the same shape, lie in the same order.
bool is_laid_out_as(const torch::Tensor& tensor, const torch::Tensor& other) {
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    if (tensor.size(i) != 1 && tensor.stride(i) != other.stride(i)) return false;
  }
  return true;
}

torch::Tensor laid_out_as(const torch::Tensor& tensor, const torch::Tensor& other) {
  if (is_laid_out_as(tensor, other)) return tensor;
  return torch::empty_like(other).copy_(tensor);
}

const torch::Tensor& required_state(const NamedTensors& state, const std::string& name) {
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
  check(options.head_learning_rate_scale == 1 || !head.empty(),
        "optimizer: this model does not tell what its head is");
  std::vector<OptimizerParamGroup> groups;
  const auto add = [&](Part part) {
    const double coupled = is_coupled(options.kind) ? part.decay : 0;
    groups.emplace_back(std::vector<torch::Tensor>{part.parameter},
                        group_options(options, coupled));
    part.key = optimizer_state_key(part.parameter);
    parts_.push_back(std::move(part));
  };
  for (const auto& item : model.named_parameters()) {
    const auto& parameter = item.value();
    const bool is_head = std::any_of(head.begin(), head.end(), [&](const torch::Tensor& each) {
      return each.is_same(parameter);
    });
    const bool decays = options.decays_vectors || parameter.dim() > 1;
    add({.name = item.key(),
         .parameter = parameter,
         .decay = decays ? options.weight_decay : 0,
         .learning_rate_scale = is_head ? options.head_learning_rate_scale : 1});
  }
  if (log_temperature.defined()) add({.name = kLogTemperature, .parameter = log_temperature});
  optimizer_ = optimizer_for(options, groups);
}

void Optimizer::zero_gradients() {
  for (auto& part : parts_) part.parameter.mutable_grad() = torch::Tensor();
}

// The pointers that one pass over all parameters needs.
class Optimizer::OnePass {
 public:
  OnePass(Optimizer& optimizer, double learning_rate)
      : optimizer_(optimizer), learning_rate_(learning_rate) {
    for (const auto& part : optimizer.parts_) {
      if (part.parameter.grad().defined()) add(part);
    }
  }

  void run() {
    if (is_sgd(options().kind)) {
      const SgdRule rule{.momentum = options().momentum,
                         .nesterov = options().nesterov,
                         .gradient_scale = gradient_scale()};
      sgd_step(floats_, rule);
      sgd_step(doubles_, rule);
    } else {
      const AdamRule rule{.beta1 = options().beta1,
                          .beta2 = options().beta2,
                          .epsilon = options().epsilon,
                          .gradient_scale = gradient_scale()};
      adam_step(floats_, rule);
      adam_step(doubles_, rule);
    }
  }

 private:
  const OptimizerOptions& options() const { return optimizer_.options_; }

  void add(const Part& part) {
    // Graphs that keep the parameter must see that it changes, as LibTorch's own operations tell.
    torch::autograd::impl::bump_version(part.parameter);
    if (part.parameter.scalar_type() == torch::kFloat32) {
      floats_.push_back(tensor_of<float>(part));
    } else {
      doubles_.push_back(tensor_of<double>(part));
    }
  }

  template <class Scalar>
  SteppedTensor<Scalar> tensor_of(const Part& part) {
    const auto& parameter = part.parameter;
    gradients_.push_back(laid_out_as(parameter.grad(), parameter));
    const double learning_rate = learning_rate_ * part.learning_rate_scale;
    const bool couples = is_coupled(options().kind);
    SteppedTensor<Scalar> tensor{.parameter = parameter.template data_ptr<Scalar>(),
                                 .gradient = gradients_.back().template data_ptr<Scalar>(),
                                 .length = parameter.numel(),
                                 .learning_rate = learning_rate,
                                 .decay = couples ? part.decay : 0,
                                 .shrink = couples ? 1 : 1 - learning_rate * part.decay};
    if (!is_sgd(options().kind)) {
      auto& own = remembered<AdamParamState>(part);
      own.step(own.step() + 1);
      tensor.steps = own.step();
      tensor.mean = numbers_of<Scalar>(own.exp_avg(), parameter);
      tensor.mean_square = numbers_of<Scalar>(own.exp_avg_sq(), parameter);
    } else if (options().momentum != 0) {
      auto& own = remembered<SGDParamState>(part);
      tensor.mean = numbers_of<Scalar>(own.momentum_buffer(), parameter);
    }
    return tensor;
  }

  template <class State>
  State& remembered(const Part& part) {
    auto& own = optimizer_.optimizer_->state()[part.key];
    if (own == nullptr) own = std::make_unique<State>();
    return static_cast<State&>(*own);
  }

  // Zeros if nothing is remembered yet.
  template <class Scalar>
  static Scalar* numbers_of(torch::Tensor& remembered, const torch::Tensor& parameter) {
    remembered =
        remembered.defined() ? laid_out_as(remembered, parameter) : torch::zeros_like(parameter);
    return remembered.data_ptr<Scalar>();
  }

  // As clip_grad_norm_ of LibTorch.
  double gradient_scale() const {
    if (options().clip_norm <= 0) return 1;
    const double norm = std::sqrt(squared_gradients(floats_) + squared_gradients(doubles_));
    const double scale = options().clip_norm / (norm + 1e-6);
    return scale > 1 ? 1 : scale;  // NaN stays
  }

  Optimizer& optimizer_;
  double learning_rate_;
  std::vector<torch::Tensor> gradients_;  // those that had to be copied would be gone otherwise
  SteppedTensors<float> floats_;
  SteppedTensors<double> doubles_;
};

bool Optimizer::is_for_one_pass() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const Part& part) {
    const auto& gradient = part.parameter.grad();
    return !gradient.defined() ||
           (is_dense(part.parameter) && gradient.layout() == torch::kStrided);
  });
}

void Optimizer::reference_step(double learning_rate) {
  if (options_.clip_norm > 0) {
    std::vector<torch::Tensor> parameters;
    for (const auto& part : parts_) parameters.push_back(part.parameter);
    torch::nn::utils::clip_grad_norm_(parameters, options_.clip_norm);
  }
  auto& groups = optimizer_->param_groups();
  for (size_t i = 0; i < parts_.size(); ++i) {
    auto& part = parts_[i];
    const double own_rate = learning_rate * part.learning_rate_scale;
    groups[i].options().set_lr(own_rate);
    if (!is_coupled(options_.kind) && part.decay > 0 && part.parameter.grad().defined()) {
      part.parameter.mul_(1 - own_rate * part.decay);
    }
  }
  optimizer_->step();
}

void Optimizer::step(double learning_rate) {
  torch::NoGradGuard no_grad;
  if (uses_reference_ops() || !is_for_one_pass()) {
    reference_step(learning_rate);
  } else {
    OnePass(*this, learning_rate).run();
  }
}

NamedTensors Optimizer::state() const {
  NamedTensors tensors;
  const auto& states = optimizer_->state();
  for (const auto& part : parts_) {
    const auto found = states.find(part.key);
    if (found == states.end()) continue;  // before the first step, or without momentum
    if (is_sgd(options_.kind)) {
      const auto& own = static_cast<const SGDParamState&>(*found->second);
      if (own.momentum_buffer().defined()) tensors[part.name + kMomentum] = own.momentum_buffer();
    } else {
      const auto& own = static_cast<const AdamParamState&>(*found->second);
      tensors[part.name + kMean] = own.exp_avg();
      tensors[part.name + kMeanSquare] = own.exp_avg_sq();
      tensors[part.name + kSteps] = torch::tensor(own.step(), torch::kInt64);
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
  for (const auto& part : parts_) {
    if (is_sgd(options_.kind)) {
      auto own = std::make_unique<SGDParamState>();
      own->momentum_buffer(like(required_state(state, part.name + kMomentum), part.parameter));
      states[part.key] = std::move(own);
    } else {
      auto own = std::make_unique<AdamParamState>();
      own->exp_avg(like(required_state(state, part.name + kMean), part.parameter));
      own->exp_avg_sq(like(required_state(state, part.name + kMeanSquare), part.parameter));
      const auto steps = required_state(state, part.name + kSteps);
      check(steps.numel() == 1 && steps.scalar_type() == torch::kInt64, "optimizer: '", part.name,
            kSteps, "' must be one whole number");
      own->step(steps.item<int64_t>());
      states[part.key] = std::move(own);
    }
  }
}

}  // namespace kelvin
