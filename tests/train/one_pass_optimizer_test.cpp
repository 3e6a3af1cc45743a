#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kelvin/model/head.h"
#include "kelvin/model/weights.h"
#include "kelvin/ops/reference_ops.h"
#include "kelvin/train/optimizer.h"
#include "tests/support/tensors.h"

namespace kelvin::one_pass_optimizer_test {

// Parameters of all shapes and orders in memory, and a head.
class MixedModel : public Model {
 public:
  explicit MixedModel(torch::ScalarType type) : head_(5, 3, {}) {
    const auto add = [&](const std::string& name, const std::vector<int64_t>& shape,
                         torch::MemoryFormat format = torch::MemoryFormat::Contiguous) {
      register_parameter(name, noise(shape, ++seed_).contiguous(format));
    };
    add("maps", {6, 4, 3, 3}, torch::MemoryFormat::ChannelsLast);
    add("points", {6, 4, 1, 1}, torch::MemoryFormat::ChannelsLast);
    add("matrix", {150, 150});  // with the next one too much for one thread
    add("wide", {20, 1001});
    add("vector", {17});
    add("scalar", {});
    add("empty", {0, 3});
    add("idle", {4});  // never has a gradient
    register_parameter("turned", noise({8, 5}, ++seed_).t());
    head_.register_in(*this, *this, "head");
    to(type);
    torch::NoGradGuard no_grad;
    for (auto& parameter : head_.linear()->parameters()) {
      parameter.copy_(noise(parameter.sizes().vec(), ++seed_));
    }
  }

  torch::Tensor forward(const torch::Tensor& images, Taps*) override { return images; }
  Head* head() override { return &head_; }

 private:
  uint64_t seed_ = 0;
  Head head_;
};

// A mixed model whose optimizer is shown drawn gradients.
class MixedTraining {
 public:
  MixedTraining(torch::ScalarType type, const OptimizerOptions& options)
      : model_(type), optimizer_(model_, options, log_temperature_) {}

  void step(bool is_reference) {
    const ReferenceOpsScope path(is_reference);
    optimizer_.zero_gradients();
    uint64_t seed = 1000 * ++steps_;
    for (const auto& item : model_.named_parameters()) {
      auto parameter = item.value();
      if (item.key() == "idle") continue;
      auto gradient = noise(parameter.sizes().vec(), ++seed).to(parameter.scalar_type());
      // Every other time in the parameter's order, as LibTorch does it.
      if (steps_ % 2 == 0) gradient = torch::empty_like(parameter).detach().copy_(gradient);
      parameter.mutable_grad() = gradient;
    }
    log_temperature_.mutable_grad() = noise({}, ++seed);
    optimizer_.step(0.1 / std::sqrt(static_cast<double>(steps_)));
  }

  torch::Tensor parameter(const std::string& name) { return model_.named_parameters()[name]; }
  torch::Tensor log_temperature() { return log_temperature_; }
  Optimizer& optimizer() { return optimizer_; }

  // All numbers there are, copied.
  NamedTensors numbers() const {
    NamedTensors all;
    for (const auto& item : model_.named_parameters()) all[item.key()] = item.value();
    all["log_temperature"] = log_temperature_;
    all.merge(optimizer_.state());
    for (auto& [name, tensor] : all) tensor = tensor.detach().clone();
    return all;
  }

 private:
  MixedModel model_;
  torch::Tensor log_temperature_ = torch::tensor(0.5, torch::kFloat64).set_requires_grad(true);
  Optimizer optimizer_;
  uint64_t steps_ = 0;
};

void expect_near(const NamedTensors& actual, const NamedTensors& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(actual.contains(name)) << name;
    if (tensor.numel() == 0) continue;
    const auto numbers = tensor.to(torch::kFloat64);
    const auto difference = (actual.at(name).to(torch::kFloat64) - numbers).abs().max();
    EXPECT_LE(difference.item<double>(), tolerance * numbers.abs().max().item<double>()) << name;
  }
}

bool is_same(const NamedTensors& actual, const NamedTensors& expected) {
  return actual.size() == expected.size() &&
         std::all_of(expected.begin(), expected.end(),
                     [&](const auto& item) { return actual.at(item.first).equal(item.second); });
}

const std::vector<OptimizerOptions> kKinds = {
    {.momentum = 0, .weight_decay = 0},
    {.weight_decay = 0},
    {.weight_decay = 0.1},
    {.weight_decay = 0.1, .clip_norm = 30},
    {.weight_decay = 0.1, .clip_norm = 1e9},
    {.nesterov = true, .weight_decay = 0.1, .decays_vectors = false},
    {.kind = OptimizerKind::sgdw, .weight_decay = 0.1, .head_learning_rate_scale = 0.25},
    {.kind = OptimizerKind::sgdw, .nesterov = true, .weight_decay = 0.1, .clip_norm = 30},
    {.kind = OptimizerKind::adam, .weight_decay = 0},
    {.kind = OptimizerKind::adam, .weight_decay = 0.1, .clip_norm = 30},
    {.kind = OptimizerKind::adamw, .weight_decay = 0.1, .head_learning_rate_scale = 0.25},
    {.kind = OptimizerKind::adamw, .weight_decay = 0.1, .decays_vectors = false, .clip_norm = 30},
};

class OnePass : public testing::TestWithParam<OptimizerOptions> {};

TEST_P(OnePass, StepsAsLibTorchDoes) {
  for (const auto type : {torch::kFloat64, torch::kFloat32}) {
    MixedTraining ours(type, GetParam());
    MixedTraining theirs(type, GetParam());
    const auto start = ours.numbers();
    for (int step = 0; step < 50; ++step) {
      ours.step(false);
      theirs.step(true);
    }
    expect_near(ours.numbers(), theirs.numbers(), type == torch::kFloat64 ? 1e-12 : 4e-6);
    EXPECT_TRUE(ours.numbers().at("idle").equal(start.at("idle")));
    EXPECT_FALSE(ours.numbers().at("scalar").equal(start.at("scalar")));
  }
}

TEST_P(OnePass, TakesTurnsWithLibTorch) {
  MixedTraining ours(torch::kFloat64, GetParam());
  MixedTraining theirs(torch::kFloat64, GetParam());
  for (int step = 0; step < 12; ++step) {
    ours.step(step % 3 == 0);  // LibTorch first, which may order its memory otherwise
    theirs.step(step % 3 == 1);
  }
  expect_near(ours.numbers(), theirs.numbers(), 1e-14);
}

TEST_P(OnePass, HasTheSameBitsForAnyNumberOfThreads) {
  const auto after_steps = [&](int threads) {
    const auto before = torch::get_num_threads();
    torch::set_num_threads(threads);
    MixedTraining training(torch::kFloat32, GetParam());
    for (int step = 0; step < 5; ++step) training.step(false);
    torch::set_num_threads(before);
    return training.numbers();
  };
  const auto alone = after_steps(1);
  EXPECT_TRUE(is_same(after_steps(2), alone));
  EXPECT_TRUE(is_same(after_steps(3), alone));
}

// Clipped, one gradient that is no number makes none of all others; on both paths.
TEST_P(OnePass, PassesOnWhatIsNotFinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double wrong : {kInfinity, -kInfinity, std::nan("")}) {
    const auto after_steps = [&](bool is_reference) {
      const ReferenceOpsScope path(is_reference);
      MixedTraining training(torch::kFloat32, GetParam());
      training.step(is_reference);
      auto gradient = training.parameter("matrix").grad();
      gradient[3][5] = wrong;
      training.optimizer().step(0.1);
      training.step(is_reference);
      return training.numbers();
    };
    const auto ours = after_steps(false);
    for (const auto& [name, theirs] : after_steps(true)) {
      EXPECT_TRUE(ours.at(name).isnan().equal(theirs.isnan())) << name << ", " << wrong;
      EXPECT_TRUE(ours.at(name).isinf().equal(theirs.isinf())) << name << ", " << wrong;
    }
    EXPECT_FALSE(ours.at("matrix").isfinite().all().item<bool>());
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, OnePass, testing::ValuesIn(kKinds),
                         [](const auto& tested) { return "Case" + std::to_string(tested.index); });

TEST(Optimizer, LetsGraphsSeeThatParametersChanged) {
  MixedTraining training(torch::kFloat32, {});
  const auto matrix = training.parameter("matrix");
  const auto version = matrix._version();
  training.step(false);
  EXPECT_GT(matrix._version(), version);
}

TEST(Optimizer, LeavesNoGradientsWhenTheyAreZeroed) {
  for (const bool is_reference : {false, true}) {
    MixedTraining training(torch::kFloat32, {});
    training.step(is_reference);
    EXPECT_TRUE(training.parameter("matrix").grad().defined());
    training.optimizer().zero_gradients();
    EXPECT_FALSE(training.parameter("matrix").grad().defined());
    EXPECT_FALSE(training.log_temperature().grad().defined());
    const auto before = training.numbers();
    const ReferenceOpsScope path(is_reference);
    training.optimizer().step(0.1);
    EXPECT_TRUE(is_same(training.numbers(), before));
  }
}

}  // namespace kelvin::one_pass_optimizer_test
