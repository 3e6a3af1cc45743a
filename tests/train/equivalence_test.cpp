// A temperature in the loss is the same as smaller weights with other rates: what the temperature
// decides, the initial norm of the logits decides.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <vector>

#include "kelvin/model/head.h"
#include "kelvin/train/train.h"

namespace kelvin::equivalence_test {

constexpr double kTemperature = 7;
constexpr int64_t kLayers = 3;
constexpr int64_t kSteps = 50;

Dataset noise_images() {
  torch::manual_seed(5);
  constexpr int64_t kSamples = 40;
  Dataset dataset{.name = "noise", .classes = 4, .train = {}, .test = {}};
  dataset.train = {.pixels = torch::randint(256, {kSamples, 1, 4, 4}, torch::kUInt8),
                   .labels = torch::randint(4, {kSamples}, torch::kInt64)};
  dataset.test = dataset.train;
  return dataset;
}

// A ReLU network without biases, in double precision.
std::shared_ptr<Model> network() {
  torch::manual_seed(11);
  Settings settings("model", {{"width", 12}, {"depth", kLayers}, {"bias", false}});
  auto model =
      models().find("mlp").build({.channels = 1, .height = 4, .width = 4, .classes = 4}, settings);
  model->to(torch::kFloat64);
  return model;
}

// Batches of 8 out of 40: ten epochs are fifty steps.
TrainOptions options() {
  return {.epochs = 10,
          .batch_size = 8,
          .learning_rate = 5,
          .schedule = Schedule::cosine,
          .warmup_epochs = 1,
          .optimizer = {.momentum = 0.9, .weight_decay = 0}};
}

void scale(Model& model, double factor) {
  torch::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) parameter.mul_(factor);
}

// The outputs softmax_T(logits) after each step.
class Outputs : public TrainObserver {
 public:
  explicit Outputs(double temperature) : temperature_(temperature) {
    images_ = torch::linspace(-1, 1, 96, torch::kFloat64).sin().view({6, 1, 4, 4});
  }
  void after_step(const TrainState& state) override {
    torch::NoGradGuard no_grad;
    seen.push_back(torch::softmax(state.model.forward(images_) / temperature_, 1));
  }
  std::vector<torch::Tensor> seen;

 private:
  double temperature_;
  torch::Tensor images_;
};

std::vector<torch::Tensor> outputs(Model& model, const TrainOptions& options) {
  Outputs observer(options.temperature.first);
  train(model, noise_images(), options, {&observer}, [] { return false; });
  return observer.seen;
}

std::vector<torch::Tensor> with_temperature(TrainOptions with) {
  const auto model = network();
  with.temperature.first = kTemperature;
  return outputs(*model, with);
}

double largest_difference(const std::vector<torch::Tensor>& left,
                          const std::vector<torch::Tensor>& right) {
  EXPECT_EQ(left.size(), static_cast<size_t>(kSteps));
  EXPECT_EQ(right.size(), left.size());
  double largest = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    largest = std::max(largest, (left[i] - right[i]).abs().max().item<double>());
  }
  return largest;
}

TEST(Equivalence, ATemperatureIsASmallerLastLayerWithARateOverItsSquare) {
  const auto model = network();
  model->head()->scale_logits(1 / kTemperature);
  auto scaled = options();
  scaled.optimizer.head_learning_rate_scale = 1 / (kTemperature * kTemperature);
  const auto expected = with_temperature(options());
  EXPECT_LT(largest_difference(outputs(*model, scaled), expected), 1e-10);
  // Training moved.
  EXPECT_GT((expected.front() - expected.back()).abs().max().item<double>(), 0.01);
}

TEST(Equivalence, ATemperatureIsSmallerLayersWithOtherRatesAndDecay) {
  auto decaying = options();
  decaying.optimizer.weight_decay = 1e-2;
  const auto model = network();
  const double share = 1.0 / kLayers;
  scale(*model, std::pow(kTemperature, -share));
  auto scaled = decaying;
  scaled.learning_rate *= std::pow(kTemperature, -2 * share);
  scaled.optimizer.weight_decay *= std::pow(kTemperature, 2 * share);
  EXPECT_LT(largest_difference(outputs(*model, scaled), with_temperature(decaying)), 1e-10);
}

TEST(Equivalence, IsNotThatOfOneOverTheTemperatureEverywhere) {
  const auto model = network();
  scale(*model, 1 / kTemperature);
  auto scaled = options();
  scaled.learning_rate /= kTemperature;
  EXPECT_GT(largest_difference(outputs(*model, scaled), with_temperature(options())), 1e-3);
}

TEST(Equivalence, NeedsTheSquareOfTheTemperature) {
  const auto model = network();
  model->head()->scale_logits(1 / kTemperature);
  auto scaled = options();
  scaled.optimizer.head_learning_rate_scale = 1 / kTemperature;
  EXPECT_GT(largest_difference(outputs(*model, scaled), with_temperature(options())), 1e-3);
}

}  // namespace kelvin::equivalence_test
