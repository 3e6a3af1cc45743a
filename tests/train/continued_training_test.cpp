#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <string>
#include <vector>

#include "kelvin/core/seeds.h"
#include "kelvin/data/batches.h"
#include "kelvin/train/train.h"
#include "tests/support/easy_training.h"
#include "tests/support/errors.h"

namespace kelvin::continued_training_test {

struct Continued {
  const char* name;
  TrainOptions options;
  bool has_dropout = false;
};

std::ostream& operator<<(std::ostream& stream, const Continued& each) {
  return stream << each.name;
}

std::shared_ptr<Model> model_for(const Continued& each) {
  torch::manual_seed(3);
  Settings settings("model",
                    {{"width", 8}, {"depth", 2}, {"dropout", each.has_dropout ? 0.3 : 0.0}});
  return models().find("mlp").build({.channels = 3, .height = 4, .width = 4, .classes = 2},
                                    settings);
}

// Copies what it is told to remember, as a file would.
class Snapshots : public TrainObserver {
 public:
  explicit Snapshots(int64_t step) : step_(step) {}
  void after_step(const TrainState& state) override {
    if (state.step != step_) return;
    taken = state.snapshot();
    for (auto* tensors : {&taken.weights, &taken.state}) {
      for (auto& [name, tensor] : *tensors) tensor = tensor.detach().clone();
    }
  }
  TrainSnapshot taken;

 private:
  int64_t step_;
};

class ContinuedTraining : public testing::TestWithParam<Continued> {};

TEST_P(ContinuedTraining, EndsWithTheSameBitsFromAnyStep) {
  const auto dataset = dark_and_bright();
  const auto& options = GetParam().options;
  std::vector<std::string> calls;
  const auto straight = model_for(GetParam());
  Recorder whole("a", calls);
  train(*straight, dataset, options, {&whole}, kNever);
  const auto steps = total_steps(options, dataset.train.size());
  for (int64_t step = 1; step <= steps; ++step) {
    Snapshots snapshots(step);
    const auto first = model_for(GetParam());
    int64_t done = 0;
    train(*first, dataset, options, {&snapshots}, [&] { return ++done == step; });
    torch::manual_seed(99);
    const auto second = model_for(GetParam());
    std::vector<std::string> ignored;
    Recorder rest("a", ignored);
    torch::manual_seed(77);
    train(*second, dataset, options, {&rest}, kNever, &snapshots.taken);
    EXPECT_TRUE(all_equal(second->parameters(), straight->parameters())) << "from step " << step;
    EXPECT_EQ(rest.epoch_losses.back(), whole.epoch_losses.back()) << "from step " << step;
    if (step < steps) {
      EXPECT_EQ(rest.rates.back(), whole.rates.back()) << "from step " << step;
    }
    EXPECT_EQ(rest.images, step == steps ? 0 : whole.images);
  }
}

TrainOptions two_epochs() {
  auto options = few_epochs();
  options.epochs = 2;
  return options;
}

Continued continued(const char* name, const std::function<void(TrainOptions&)>& change,
                    bool has_dropout = false) {
  auto options = two_epochs();
  change(options);
  return {name, options, has_dropout};
}

INSTANTIATE_TEST_SUITE_P(
    All, ContinuedTraining,
    testing::Values(continued("Sgd", [](auto&) {}),
                    continued(
                        "Dropout", [](auto&) {}, /*has_dropout=*/true),
                    continued("Augmented",
                              [](auto& o) { o.augmentation = Augmentation::crop_flip; }),
                    continued("Adam", [](auto& o) { o.optimizer.kind = OptimizerKind::adam; }),
                    continued("Adamw", [](auto& o) { o.optimizer.kind = OptimizerKind::adamw; }),
                    continued("SingleImageLeftOver", [](auto& o) { o.batch_size = 7; }),
                    continued("Average", [](auto& o) { o.ema_decay = 0.9; }),
                    continued("Bfloat16", [](auto& o) { o.precision = Precision::bf16; }),
                    continued("TwoViews", [](auto& o) { compare_views(o); }),
                    continued("LearnedTemperature",
                              [](auto& o) {
                                o.temperature = {.first = 3,
                                                 .schedule = TemperatureSchedule::learned};
                                o.optimizer.kind = OptimizerKind::adam;
                                o.ema_decay = 0.5;
                              }),
                    continued("CyclicTemperature",
                              [](auto& o) {
                                o.temperature = {
                                    .first = 3, .schedule = TemperatureSchedule::cyclic, .last = 1};
                              })),
    [](const auto& tested) { return tested.param.name; });

TEST(Train, RefusesToGoOnFromTheWeightsOfAnotherModel) {
  Snapshots snapshots(1);
  const Continued small{"", two_epochs()};
  train(*model_for(small), dark_and_bright(), small.options, {&snapshots}, kNever);
  torch::manual_seed(3);
  Settings settings("model", {{"width", 9}, {"depth", 2}});
  const auto other =
      models().find("mlp").build({.channels = 3, .height = 4, .width = 4, .classes = 2}, settings);
  const auto message = error_of(
      [&] { train(*other, dark_and_bright(), small.options, {}, kNever, &snapshots.taken); });
  EXPECT_TRUE(message.starts_with("train: the weights to go on from: 'layers.0.bias' must be "))
      << message;
}

}  // namespace kelvin::continued_training_test
