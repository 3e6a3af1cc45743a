#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kelvin/train/train.h"
#include "tests/support/losses.h"

namespace kelvin {

inline const auto kNever = [] { return false; };

// Two classes, dark and bright images: learnt in a few steps.
inline Dataset dark_and_bright(int64_t samples = 50) {
  torch::manual_seed(0);
  Dataset dataset{.name = "dark_and_bright", .classes = 2, .train = {}, .test = {}};
  const auto labels = torch::arange(samples, torch::kInt64).remainder(2);
  const auto noise = torch::randint(100, {samples, 3, 4, 4}, torch::kInt64);
  dataset.train = {.pixels = (noise + 150 * labels.view({-1, 1, 1, 1})).to(torch::kUInt8),
                   .labels = labels};
  dataset.test = dataset.train;
  return dataset;
}

inline std::shared_ptr<Model> small_model() {
  torch::manual_seed(3);
  Settings settings("model", {{"width", 8}, {"depth", 2}});
  return models().find("mlp").build({.channels = 3, .height = 4, .width = 4, .classes = 2},
                                    settings);
}

inline TrainOptions few_epochs() {
  return {.epochs = 3, .batch_size = 16, .learning_rate = 0.1, .warmup_epochs = 0};
}

inline bool all_equal(const std::vector<torch::Tensor>& left,
                      const std::vector<torch::Tensor>& right) {
  EXPECT_EQ(left.size(), right.size());
  for (size_t i = 0; i < left.size(); ++i) {
    if (!left[i].equal(right[i])) return false;
  }
  return true;
}

// The networks here have two outputs.
inline void compare_views(TrainOptions& options) {
  options.loss = made_loss("info_nce", {{"loss_dimensions", 2}});
  options.augmentation = Augmentation::crop_flip;
}

// Notes each call in a list that several recorders may share.
class Recorder : public TrainObserver {
 public:
  Recorder(std::string name, std::vector<std::string>& calls)
      : name_(std::move(name)), calls_(calls) {}

  void before_training(const TrainState& state) override { note("before", state); }
  void after_step(const TrainState& state) override {
    note("step", state);
    losses.push_back(state.loss);
    rates.push_back(state.learning_rate);
    images = state.images;
    total_steps = state.total_steps;
    was_always_training &= state.model.is_training();
  }
  void after_epoch(const TrainState& state) override {
    note("epoch", state);
    epoch_losses.push_back(state.loss);
  }
  void at_stop(const TrainState& state) override { note("stop", state); }

  std::vector<double> losses;
  std::vector<double> rates;
  std::vector<double> epoch_losses;
  int64_t images = 0;
  int64_t total_steps = 0;
  bool was_always_training = true;

 private:
  void note(const std::string& what, const TrainState& state) {
    calls_.push_back(name_ + " " + what + " " + std::to_string(state.epoch) + " " +
                     std::to_string(state.step));
  }

  std::string name_;
  std::vector<std::string>& calls_;
};

}  // namespace kelvin
