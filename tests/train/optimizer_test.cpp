#include "kelvin/train/optimizer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "kelvin/model/head.h"
#include "kelvin/model/weights.h"
#include "kelvin/ops/reference_ops.h"
#include "tests/support/errors.h"
#include "tests/support/python.h"
#include "tests/support/tensors.h"

namespace kelvin::optimizer_test {

// Two linear maps in double precision, whose weights and gradients are set by a formula that
// Python computes as well.
std::shared_ptr<Model> formula_model() {
  Settings settings("model", {{"width", 2}, {"depth", 2}});
  const auto model =
      models().find("mlp").build({.channels = 1, .height = 1, .width = 2, .classes = 3}, settings);
  model->to(torch::kFloat64);
  torch::NoGradGuard no_grad;
  int64_t place = 0;
  for (auto& parameter : model->parameters()) {
    auto flat = parameter.view(-1);
    for (int64_t i = 0; i < flat.numel(); ++i) flat[i] = std::sin(static_cast<double>(++place));
  }
  return model;
}

void set_gradients(Model& model, int64_t step) {
  int64_t place = 0;
  for (auto& parameter : model.parameters()) {
    auto gradient = torch::empty_like(parameter);
    auto flat = gradient.view(-1);
    for (int64_t i = 0; i < flat.numel(); ++i) {
      flat[i] = std::cos(static_cast<double>(++place + 10 * step));
    }
    parameter.mutable_grad() = gradient;
  }
}

std::vector<double> numbers(const Model& model) {
  std::vector<double> all;
  for (const auto& parameter : model.parameters()) {
    const auto flat = parameter.detach().contiguous().view(-1);
    for (int64_t i = 0; i < flat.numel(); ++i) all.push_back(flat[i].item<double>());
  }
  return all;
}

constexpr int64_t kSteps = 12;

std::vector<double> after_steps(const OptimizerOptions& options) {
  const auto model = formula_model();
  Optimizer optimizer(*model, options);
  for (int64_t step = 0; step < kSteps; ++step) {
    set_gradients(*model, step);
    optimizer.step(0.1 / static_cast<double>(step + 1));
  }
  return numbers(*model);
}

// `rule` makes the optimizer of `parameters`; `before` runs before each step with the rate `lr`.
std::vector<double> in_python(const std::string& rule, const std::string& before = "pass") {
  const auto text = python_output(R"(
import torch, math
place = 0
parameters = []
for shape in [(2, 2), (2,), (3, 2), (3,)]:
    tensor = torch.zeros(shape, dtype=torch.float64)
    flat = tensor.view(-1)
    for i in range(flat.numel()):
        place += 1
        flat[i] = math.sin(place)
    parameters.append(torch.nn.Parameter(tensor))
optimizer = )" + rule + R"(
for step in range(12):
    place = 0
    for parameter in parameters:
        gradient = torch.zeros_like(parameter)
        flat = gradient.view(-1)
        for i in range(flat.numel()):
            place += 1
            flat[i] = math.cos(place + 10 * step)
        parameter.grad = gradient
    lr = 0.1 / (step + 1)
    for group in optimizer.param_groups: group['lr'] = lr
    )" + before + R"(
    optimizer.step()
for parameter in parameters:
    for value in parameter.detach().view(-1): print(repr(value.item()))
)");
  std::istringstream lines(text);
  std::vector<double> values;
  for (double value = 0; lines >> value;) values.push_back(value);
  return values;
}

void expect_equal(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-12) << i;
}

TEST(Optimizer, IsPythonsSgd) {
  expect_equal(after_steps({.momentum = 0.9, .weight_decay = 0.3}),
               in_python("torch.optim.SGD(parameters, lr=1, momentum=0.9, weight_decay=0.3)"));
  expect_equal(after_steps({.momentum = 0.8, .nesterov = true, .weight_decay = 0}),
               in_python("torch.optim.SGD(parameters, lr=1, momentum=0.8, nesterov=True)"));
  expect_equal(after_steps({.momentum = 0, .weight_decay = 0}),
               in_python("torch.optim.SGD(parameters, lr=1)"));
}

TEST(Optimizer, IsPythonsAdam) {
  expect_equal(after_steps({.kind = OptimizerKind::adam,
                            .beta1 = 0.8,
                            .beta2 = 0.95,
                            .epsilon = 1e-3,
                            .weight_decay = 0.3}),
               in_python("torch.optim.Adam(parameters, lr=1, betas=(0.8, 0.95), eps=1e-3, "
                         "weight_decay=0.3)"));
}

TEST(Optimizer, IsPythonsAdamWithDecoupledDecay) {
  expect_equal(after_steps({.kind = OptimizerKind::adamw, .weight_decay = 0.3}),
               in_python("torch.optim.AdamW(parameters, lr=1, weight_decay=0.3)"));
}

TEST(Optimizer, ShrinksWeightsBesideTheGradientWithSgdw) {
  expect_equal(after_steps({.kind = OptimizerKind::sgdw, .momentum = 0.9, .weight_decay = 0.3}),
               in_python("torch.optim.SGD(parameters, lr=1, momentum=0.9)",
                         "[p.data.mul_(1 - lr * 0.3) for p in parameters]"));
}

TEST(Optimizer, LeavesVectorsUndecayedIfAskedTo) {
  const std::string groups =
      "[{'params': [parameters[0], parameters[2]], 'weight_decay': 0.3}, "
      "{'params': [parameters[1], parameters[3]], 'weight_decay': 0}]";
  expect_equal(after_steps({.weight_decay = 0.3, .decays_vectors = false}),
               in_python("torch.optim.SGD(" + groups + ", lr=1, momentum=0.9)"));
  expect_equal(
      after_steps({.kind = OptimizerKind::adamw, .weight_decay = 0.3, .decays_vectors = false}),
      in_python("torch.optim.AdamW(" + groups + ", lr=1)"));
}

TEST(Optimizer, ClipsTheNormOfAllGradients) {
  expect_equal(after_steps({.momentum = 0, .weight_decay = 0, .clip_norm = 0.5}),
               in_python("torch.optim.SGD(parameters, lr=1)",
                         "torch.nn.utils.clip_grad_norm_(parameters, 0.5)"));
}

TEST(Optimizer, GivesTheHeadARateOfItsOwn) {
  expect_equal(after_steps({.momentum = 0, .weight_decay = 0, .head_learning_rate_scale = 0.25}),
               in_python("torch.optim.SGD(parameters, lr=1)",
                         "[p.grad.mul_(0.25) for p in parameters[2:]]"));
}

TEST(Optimizer, NeitherDecaysNorForgetsALearnedTemperature) {
  for (const auto kind : {OptimizerKind::sgd, OptimizerKind::sgdw, OptimizerKind::adamw}) {
    const auto model = formula_model();
    auto log_temperature = torch::tensor(2.0, torch::kFloat64).set_requires_grad(true);
    Optimizer optimizer(*model, {.kind = kind, .weight_decay = 0.5}, log_temperature);
    set_gradients(*model, 0);
    log_temperature.mutable_grad() = torch::tensor(0.0, torch::kFloat64);
    optimizer.step(0.1);
    EXPECT_EQ(log_temperature.item<double>(), 2);
    log_temperature.mutable_grad() = torch::tensor(1.0, torch::kFloat64);
    optimizer.step(0.1);
    EXPECT_LT(log_temperature.item<double>(), 2);
  }
}

void expect_same_after_restoring(const OptimizerOptions& options) {
  const auto straight = formula_model();
  Optimizer one(*straight, options);
  for (int64_t step = 0; step < 4; ++step) {
    set_gradients(*straight, step);
    one.step(0.1);
  }
  const auto resumed = formula_model();
  auto to = weights_of(*resumed);
  copy_weights(weights_of(*straight), to, "test");
  NamedTensors saved;
  for (const auto& [name, tensor] : one.state()) saved[name] = tensor.clone();
  Optimizer other(*resumed, options);
  other.restore(saved);
  for (int64_t step = 4; step < 8; ++step) {
    set_gradients(*straight, step);
    one.step(0.1);
    set_gradients(*resumed, step);
    other.step(0.1);
  }
  EXPECT_EQ(numbers(*resumed), numbers(*straight));
}

class RestoredOptimizer : public testing::TestWithParam<OptimizerOptions> {};

TEST_P(RestoredOptimizer, GoesOnToTheSameBits) { expect_same_after_restoring(GetParam()); }

TEST_P(RestoredOptimizer, GoesOnToTheSameBitsWithReferenceOps) {
  const ReferenceOpsScope path(true);
  expect_same_after_restoring(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Kinds, RestoredOptimizer,
                         testing::Values(OptimizerOptions{}, OptimizerOptions{.momentum = 0},
                                         OptimizerOptions{.kind = OptimizerKind::sgdw,
                                                          .nesterov = true},
                                         OptimizerOptions{.kind = OptimizerKind::adam},
                                         OptimizerOptions{.kind = OptimizerKind::adamw}),
                         [](const auto& tested) { return "Case" + std::to_string(tested.index); });

TEST(Optimizer, RefusesTheStateOfAnother) {
  const auto model = formula_model();
  Optimizer sgd(*model, {});
  set_gradients(*model, 0);
  sgd.step(0.1);
  Optimizer adam(*model, {.kind = OptimizerKind::adam});
  EXPECT_EQ(error_of([&] { adam.restore(sgd.state()); }),
            "optimizer: its state has no 'layers.0.weight/mean'; is it of another optimizer?");
}

TEST(Optimizer, LeavesWhatIsNotDenseToLibTorch) {
  const auto after_steps = [](bool is_reference) {
    const ReferenceOpsScope path(is_reference);
    const auto model = formula_model();
    auto parameter = model->parameters().front();
    const auto gapped = torch::cat({parameter.detach(), parameter.detach()}, 1);
    parameter.set_data(gapped.slice(1, 0, parameter.size(1)));
    EXPECT_FALSE(parameter.is_contiguous());
    Optimizer optimizer(*model, {.kind = OptimizerKind::adamw});
    for (int64_t step = 0; step < 3; ++step) {
      int64_t place = 0;
      for (auto& each : model->parameters()) {
        each.mutable_grad() = noise(each.sizes().vec(), 10 * step + ++place);
      }
      optimizer.step(0.1);
    }
    return numbers(*model);
  };
  EXPECT_EQ(after_steps(false), after_steps(true));
}

TEST(Optimizer, IsKnownByName) {
  EXPECT_EQ(optimizer_of("sgdw"), OptimizerKind::sgdw);
  EXPECT_EQ(error_of([] { optimizer_of("lion"); }),
            "train.optimizer: must be sgd, sgdw, adam or adamw, got 'lion'");
}

}  // namespace kelvin::optimizer_test
