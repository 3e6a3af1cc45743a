#include "kelvin/train/train.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

const auto kNever = [] { return false; };

// Two classes, dark and bright images: learnt in a few steps.
Dataset dark_and_bright(int64_t samples = 50) {
  torch::manual_seed(0);
  Dataset dataset{.name = "dark_and_bright", .classes = 2, .train = {}, .test = {}};
  const auto labels = torch::arange(samples, torch::kInt64).remainder(2);
  const auto noise = torch::randint(100, {samples, 3, 4, 4}, torch::kInt64);
  dataset.train = {.pixels = (noise + 150 * labels.view({-1, 1, 1, 1})).to(torch::kUInt8),
                   .labels = labels};
  dataset.test = dataset.train;
  return dataset;
}

std::shared_ptr<Model> small_model() {
  torch::manual_seed(3);
  Settings settings("model", {{"width", 8}, {"depth", 2}});
  return models().find("mlp").build({.channels = 3, .height = 4, .width = 4, .classes = 2},
                                    settings);
}

TrainOptions few_epochs() {
  return {.epochs = 3, .batch_size = 16, .rate = 0.1, .warmup_epochs = 0};
}

std::vector<torch::Tensor> weights_after(const TrainOptions& options) {
  const auto model = small_model();
  train(*model, dark_and_bright(), options, {}, kNever);
  return model->parameters();
}

bool all_equal(const std::vector<torch::Tensor>& left, const std::vector<torch::Tensor>& right) {
  EXPECT_EQ(left.size(), right.size());
  for (size_t i = 0; i < left.size(); ++i) {
    if (!left[i].equal(right[i])) return false;
  }
  return true;
}

TEST(Train, ShowsAugmentedImagesIfAskedTo) {
  auto options = few_epochs();
  const auto plain = weights_after(options);
  options.augmentation = Augmentation::crop_flip;
  EXPECT_FALSE(all_equal(weights_after(options), plain));
  EXPECT_TRUE(all_equal(weights_after(options), weights_after(options)));
}

TEST(Train, RefusesADatasetWithoutTrainingImages) {
  auto dataset = dark_and_bright();
  dataset.train = {};
  const auto model = small_model();
  EXPECT_EQ(error_of([&] { train(*model, dataset, few_epochs(), {}, kNever); }),
            "train: dataset 'dark_and_bright' has no training images");
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
    rates.push_back(state.rate);
    images = state.images;
    total_steps = state.total_steps;
    was_always_training &= state.model.is_training();
  }
  void after_epoch(const TrainState& state) override {
    note("epoch", state);
    epoch_losses.push_back(state.loss);
  }

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

TEST(Train, LowersTheLoss) {
  std::vector<std::string> calls;
  Recorder recorder("a", calls);
  const auto model = small_model();
  auto options = few_epochs();
  options.epochs = 8;
  const auto outcome = train(*model, dark_and_bright(), options, {&recorder}, kNever);
  EXPECT_EQ(outcome, TrainOutcome::finished);
  EXPECT_LT(recorder.epoch_losses.back(), 0.2 * recorder.epoch_losses.front());
}

TEST(Train, CallsObserversInOrderWithWhereItStands) {
  std::vector<std::string> calls;
  Recorder first("a", calls);
  Recorder second("b", calls);
  auto options = few_epochs();
  options.epochs = 2;
  options.batch_size = 30;
  train(*small_model(), dark_and_bright(50), options, {&first, &second}, kNever);
  EXPECT_EQ(calls, (std::vector<std::string>{
                       "a before 0 0", "b before 0 0", "a step 0 1", "b step 0 1", "a step 0 2",
                       "b step 0 2", "a epoch 1 2", "b epoch 1 2", "a step 1 3", "b step 1 3",
                       "a step 1 4", "b step 1 4", "a epoch 2 4", "b epoch 2 4"}));
  EXPECT_EQ(first.images, 100);
  EXPECT_EQ(first.total_steps, 4);
  EXPECT_EQ(total_steps(options, 50), 4);
  EXPECT_TRUE(first.was_always_training);
}

TEST(Train, TellsAnEpochsLossAsTheMeanOverItsSamples) {
  std::vector<std::string> calls;
  Recorder recorder("a", calls);
  auto options = few_epochs();
  options.epochs = 1;
  options.batch_size = 30;
  train(*small_model(), dark_and_bright(50), options, {&recorder}, kNever);
  ASSERT_EQ(recorder.losses.size(), 2U);
  EXPECT_NEAR(recorder.epoch_losses[0], (30 * recorder.losses[0] + 20 * recorder.losses[1]) / 50,
              1e-12);
}

TEST(Train, UsesTheRateOfTheSchedule) {
  std::vector<std::string> calls;
  Recorder recorder("a", calls);
  auto options = few_epochs();
  options.epochs = 2;
  options.batch_size = 25;
  options.warmup_epochs = 1;
  train(*small_model(), dark_and_bright(50), options, {&recorder}, kNever);
  ASSERT_EQ(recorder.rates.size(), 4U);
  EXPECT_DOUBLE_EQ(recorder.rates[0], 0.05);
  EXPECT_DOUBLE_EQ(recorder.rates[1], 0.1);
  EXPECT_DOUBLE_EQ(recorder.rates[2], 0.1);
  EXPECT_DOUBLE_EQ(recorder.rates[3], 0.05);
}

TEST(Train, TakesOneStepOfPlainGradientDescent) {
  const auto dataset = dark_and_bright(16);
  const auto model = small_model();
  const auto reference = small_model();
  train(*model, dataset,
        {.temperature = 2,
         .epochs = 1,
         .batch_size = 16,
         .rate = 0.5,
         .warmup_epochs = 0,
         .momentum = 0,
         .weight_decay = 0.1},
        {}, kNever);

  auto pixels = (dataset.train.pixels.to(torch::kFloat32) / 255 - 0.5) / 0.5;
  const auto logits = reference->forward(pixels, nullptr);
  torch::nn::functional::cross_entropy(logits / 2, dataset.train.labels).backward();
  torch::NoGradGuard no_grad;
  const auto trained = model->parameters();
  const auto start = reference->parameters();
  ASSERT_EQ(trained.size(), start.size());
  for (size_t i = 0; i < start.size(); ++i) {
    const auto expected = start[i] - 0.5 * (start[i].grad() + 0.1 * start[i]);
    EXPECT_TRUE(torch::allclose(trained[i], expected, 1e-4, 1e-6)) << "parameter " << i;
  }
}

TEST(Train, StopsAfterTheStepAtWhichItIsAskedTo) {
  std::vector<std::string> calls;
  Recorder recorder("a", calls);
  int asked = 0;
  const auto outcome = train(*small_model(), dark_and_bright(), few_epochs(), {&recorder},
                             [&] { return ++asked == 2; });
  EXPECT_EQ(outcome, TrainOutcome::stopped);
  EXPECT_EQ(calls, (std::vector<std::string>{"a before 0 0", "a step 0 1", "a step 0 2"}));
}

TEST(Train, NamesStepTemperatureAndRateWhenTheLossIsNotFinite) {
  auto options = few_epochs();
  options.rate = 1e30;
  options.temperature = 0.5;
  options.schedule = Schedule::constant;
  const auto message =
      error_of([&] { train(*small_model(), dark_and_bright(), options, {}, kNever); });
  EXPECT_TRUE(message.starts_with("train: the loss became ")) << message;
  EXPECT_NE(message.find(" at step "), std::string::npos) << message;
  EXPECT_NE(message.find("(T = 0.5, lr = 1e+30)"), std::string::npos) << message;
}

TEST(Train, GivesTheSameBitsForTheSameSeedAndOthersForAnother) {
  auto options = few_epochs();
  const auto first = weights_after(options);
  torch::manual_seed(12345);
  EXPECT_TRUE(all_equal(weights_after(options), first));
  options.seed = 1;
  EXPECT_FALSE(all_equal(weights_after(options), first));
}

// At the size of real images: on maps of 4 x 4 pixels oneDNN's gradient of a strided 1x1
// convolution differs from run to run with two threads.
TEST(Train, GivesTheSameBitsForConvolutionsToo) {
  const auto dataset = load_dataset("glyphs10", {.train_samples = 48, .test_samples = 1});
  const auto weights = [&] {
    torch::manual_seed(3);
    Settings settings("model", {{"width", 0.25}});
    const auto model = models().find("resnet10").build({}, settings);
    train(*model, dataset, {.epochs = 1, .batch_size = 16}, {}, kNever);
    return model->parameters();
  };
  EXPECT_TRUE(all_equal(weights(), weights()));
}

TEST(Train, DependsOnTheTemperature) {
  auto options = few_epochs();
  const auto first = weights_after(options);
  options.temperature = 10;
  EXPECT_FALSE(all_equal(weights_after(options), first));
}

TEST(Train, LeavesTheModelInTrainingMode) {
  const auto model = small_model();
  model->eval();
  train(*model, dark_and_bright(), few_epochs(), {}, kNever);
  EXPECT_TRUE(model->is_training());
}

template <class Change>
std::string rejected(const Change& change) {
  auto options = few_epochs();
  change(options);
  return error_of([&] { train(*small_model(), dark_and_bright(), options, {}, kNever); });
}

TEST(Train, RejectsOptionsOutOfRange) {
  EXPECT_EQ(rejected([](auto& options) { options.temperature = 0; }),
            "train: temperature must be a finite number above 0, got 0");
  EXPECT_EQ(rejected([](auto& options) { options.epochs = 0; }),
            "train: epochs must be at least 1, got 0");
  EXPECT_EQ(rejected([](auto& options) { options.batch_size = 0; }),
            "train: batch_size must be at least 1, got 0");
  EXPECT_EQ(rejected([](auto& options) { options.rate = -0.1; }),
            "train: lr must be above 0, got -0.1");
  EXPECT_EQ(rejected([](auto& options) { options.rate = std::nan(""); }),
            "train: lr must be above 0, got nan");
}

}  // namespace
}  // namespace kelvin
