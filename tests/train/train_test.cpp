#include "kelvin/train/train.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "kelvin/core/seeds.h"
#include "kelvin/data/batches.h"
#include "tests/support/errors.h"
#include "tests/support/losses.h"

namespace kelvin::train_test {

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
  return {.epochs = 3, .batch_size = 16, .learning_rate = 0.1, .warmup_epochs = 0};
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

TEST(Train, LowersTheLoss) {
  std::vector<std::string> calls;
  Recorder recorder("a", calls);
  const auto model = small_model();
  auto options = few_epochs();
  options.epochs = 8;
  const auto result = train(*model, dark_and_bright(), options, {&recorder}, kNever);
  EXPECT_EQ(result.outcome, TrainOutcome::finished);
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
        {.temperature = {.first = 2},
         .epochs = 1,
         .batch_size = 16,
         .learning_rate = 0.5,
         .warmup_epochs = 0,
         .optimizer = {.momentum = 0, .weight_decay = 0.1}},
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
  const auto result = train(*small_model(), dark_and_bright(), few_epochs(), {&recorder},
                            [&] { return ++asked == 2; });
  EXPECT_EQ(result.outcome, TrainOutcome::stopped);
  EXPECT_EQ(calls,
            (std::vector<std::string>{"a before 0 0", "a step 0 1", "a step 0 2", "a stop 0 2"}));
}

TEST(Train, NamesStepTemperatureAndRateWhenTheLossIsNotFinite) {
  auto options = few_epochs();
  options.learning_rate = 1e30;
  options.temperature.first = 0.5;
  options.schedule = Schedule::constant;
  const auto message =
      error_of([&] { train(*small_model(), dark_and_bright(), options, {}, kNever); });
  EXPECT_TRUE(message.starts_with("train: the loss became ")) << message;
  EXPECT_NE(message.find(" at step "), std::string::npos) << message;
  EXPECT_NE(message.find("(T = 0.5, lr = 1e+30)"), std::string::npos) << message;
}

TEST(Train, LeavesTheWeightsAsTheyWereBeforeALossThatIsNotFinite) {
  const auto model = small_model();
  auto options = few_epochs();
  options.learning_rate = 1e30;
  options.schedule = Schedule::constant;
  error_of([&] { train(*model, dark_and_bright(), options, {}, kNever); });
  for (const auto& parameter : model->parameters()) {
    EXPECT_FALSE(parameter.isnan().any().item<bool>());
  }
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
  options.temperature.first = 10;
  EXPECT_FALSE(all_equal(weights_after(options), first));
}

TEST(Train, WorksFromAThousandthToTenThousand) {
  for (const double temperature : {1e-3, 1e-2, 0.1, 10.0, 1e2, 1e3, 1e4}) {
    std::vector<std::string> calls;
    Recorder recorder("a", calls);
    auto options = few_epochs();
    options.temperature.first = temperature;
    // Gradients go with 1 / T: cold ones are bounded, hot ones met by the rate.
    options.learning_rate_scaling =
        temperature > 1 ? LearningRateScaling::linear : LearningRateScaling::none;
    options.optimizer.clip_norm = 1;
    options.epochs = 8;
    train(*small_model(), dark_and_bright(), options, {&recorder}, kNever);
    EXPECT_LT(recorder.epoch_losses.back(), recorder.epoch_losses.front()) << "T = " << temperature;
  }
}

TEST(Train, LeavesTheModelInTrainingMode) {
  const auto model = small_model();
  model->eval();
  train(*model, dark_and_bright(), few_epochs(), {}, kNever);
  EXPECT_TRUE(model->is_training());
}

TEST(Train, FollowsTheScheduleOfTheTemperature) {
  class Temperatures : public TrainObserver {
   public:
    void after_step(const TrainState& state) override { seen.push_back(state.temperature); }
    std::vector<double> seen;
  } temperatures;
  auto options = few_epochs();
  options.epochs = 1;
  options.batch_size = 10;
  options.temperature = {.first = 9, .schedule = TemperatureSchedule::linear, .last = 1};
  train(*small_model(), dark_and_bright(50), options, {&temperatures}, kNever);
  EXPECT_EQ(temperatures.seen, (std::vector<double>{9, 7, 5, 3, 1}));
  EXPECT_EQ(last_temperature(options, 50), 1);
}

TEST(Train, MultipliesTheRateByTheTemperatureIfAskedTo) {
  const auto first_rate = [](LearningRateScaling scaling) {
    std::vector<std::string> calls;
    Recorder recorder("a", calls);
    auto options = few_epochs();
    options.temperature.first = 16;
    options.learning_rate_scaling = scaling;
    train(*small_model(), dark_and_bright(), options, {&recorder}, kNever);
    return recorder.rates.front();
  };
  EXPECT_DOUBLE_EQ(first_rate(LearningRateScaling::none), 0.1);
  EXPECT_DOUBLE_EQ(first_rate(LearningRateScaling::sqrt), 0.4);
  EXPECT_DOUBLE_EQ(first_rate(LearningRateScaling::linear), 1.6);
  EXPECT_EQ(learning_rate_scaling_of("sqrt"), LearningRateScaling::sqrt);
  EXPECT_EQ(error_of([] { learning_rate_scaling_of("cubic"); }),
            "train.lr_scale_with_t: must be none, linear or sqrt, got 'cubic'");
}

// The temperature at which a separable task's loss is lowest is as low as one lets it be.
TEST(Train, LowersALearnedTemperatureOnAnEasyTask) {
  auto options = few_epochs();
  options.epochs = 8;
  options.temperature = {.first = 5, .schedule = TemperatureSchedule::learned};
  class Last : public TrainObserver {
   public:
    void after_step(const TrainState& state) override { temperature = state.temperature; }
    double temperature = 0;
  } last;
  const auto result = train(*small_model(), dark_and_bright(), options, {&last}, kNever);
  EXPECT_LT(last.temperature, 4.9);
  EXPECT_GT(last.temperature, 0);
  EXPECT_EQ(result.temperature, last.temperature);
}

TEST(Train, EndsWithTheAverageOfTheWeightsIfThereIsOne) {
  auto options = few_epochs();
  const auto plain = weights_after(options);
  options.ema_decay = 0.9;
  class Average : public TrainObserver {
   public:
    void after_step(const TrainState& state) override {
      ASSERT_NE(state.ema, nullptr);
      raw.clear();
      for (const auto& parameter : state.model.parameters()) raw.push_back(parameter.clone());
      const UsedWeights used(state);
      average.clear();
      for (const auto& parameter : state.model.parameters()) average.push_back(parameter.clone());
    }
    std::vector<torch::Tensor> raw;
    std::vector<torch::Tensor> average;
  } observer;
  const auto model = small_model();
  train(*model, dark_and_bright(), options, {&observer}, kNever);
  EXPECT_TRUE(all_equal(observer.raw, plain));  // averaging does not disturb training
  EXPECT_TRUE(all_equal(model->parameters(), observer.average));
  EXPECT_FALSE(all_equal(model->parameters(), plain));
}

// In bfloat16, native or emulated, training goes nearly the same way, but not to the same bits.
TEST(Train, RoundsToBfloat16IfAskedTo) {
  auto options = few_epochs();
  const auto exact = weights_after(options);
  options.precision = Precision::bf16;
  const auto rounded = weights_after(options);
  EXPECT_FALSE(all_equal(rounded, exact));
  for (size_t i = 0; i < exact.size(); ++i) {
    EXPECT_EQ(rounded[i].scalar_type(), torch::kFloat32);
    EXPECT_TRUE(torch::allclose(rounded[i], exact[i], 0, 0.05)) << i;
  }
}

// The networks here have two outputs.
void compare_views(TrainOptions& options) {
  options.loss = made_loss("info_nce", {{"loss_dimensions", 2}});
  options.augmentation = Augmentation::crop_flip;
}

TEST(Train, ComparesTwoViewsInOneBatch) {
  // Notes what the loss is given.
  std::vector<torch::Tensor> embeddings;
  std::vector<torch::Tensor> targets;
  auto options = few_epochs();
  compare_views(options);
  options.epochs = 1;
  options.loss.function = [&, inner = options.loss.function](const torch::Tensor& logits,
                                                             const torch::Tensor& images,
                                                             const torch::Tensor& temperature) {
    embeddings.push_back(logits.detach());
    targets.push_back(images);
    return inner(logits, images, temperature);
  };
  const auto dataset = dark_and_bright(16);
  const auto model = small_model();
  const auto reference = small_model();
  train(*model, dataset, options, {}, kNever);
  ASSERT_EQ(embeddings.size(), 1U);
  EXPECT_TRUE(targets[0].equal(torch::arange(16).repeat({2})));
  const BatchMaker batches(dataset, {.augmentation = Augmentation::crop_flip,
                                     .seed = derive_seed(options.seed, "augment"),
                                     .views = 2});
  const auto order = epoch_order(derive_seed(options.seed, "order"), 0, 16);
  const auto expected = reference->forward(batches.make(dataset.train, order).images);
  EXPECT_TRUE(torch::allclose(embeddings[0], expected, 1e-5, 1e-6));
}

TEST(Train, CountsImagesAndNotTheirViews) {
  std::vector<std::string> calls;
  Recorder recorder("a", calls);
  auto options = few_epochs();
  compare_views(options);
  options.epochs = 1;
  options.batch_size = 30;
  train(*small_model(), dark_and_bright(50), options, {&recorder}, kNever);
  EXPECT_EQ(recorder.images, 50);
  EXPECT_EQ(recorder.total_steps, 2);
  ASSERT_EQ(recorder.losses.size(), 2U);
  EXPECT_NEAR(recorder.epoch_losses[0], (30 * recorder.losses[0] + 20 * recorder.losses[1]) / 50,
              1e-12);
}

// Of 2B views each has one positive among 2B - 1 candidates.
TEST(Train, TellsEntropyAndAccuracyAsMeansOverViews) {
  class Values : public TrainObserver {
   public:
    void after_step(const TrainState& state) override {
      entropy = state.entropy;
      accuracy = state.accuracy;
    }
    double entropy = 0;
    double accuracy = 0;
  } seen;
  auto options = few_epochs();
  compare_views(options);
  options.epochs = 1;
  options.temperature.first = 1e6;
  train(*small_model(), dark_and_bright(16), options, {&seen}, kNever);
  EXPECT_NEAR(seen.entropy, std::log(31), 1e-4);
  EXPECT_GE(seen.accuracy, 0);
  EXPECT_LE(seen.accuracy, 1);
  EXPECT_DOUBLE_EQ(seen.accuracy * 32, std::round(seen.accuracy * 32));
}

TEST(Train, LearnsToTellViews) {
  std::vector<std::string> calls;
  Recorder recorder("a", calls);
  auto options = few_epochs();
  compare_views(options);
  options.augmentation = Augmentation::flip;
  options.epochs = 20;
  options.temperature.first = 0.2;
  train(*small_model(), dark_and_bright(), options, {&recorder}, kNever);
  EXPECT_LT(recorder.epoch_losses.back(), recorder.epoch_losses.front() - 0.1);
}

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

template <class Change>
std::string rejected(const Change& change) {
  auto options = few_epochs();
  change(options);
  return error_of([&] { train(*small_model(), dark_and_bright(), options, {}, kNever); });
}

TEST(Train, RejectsOptionsOutOfRange) {
  EXPECT_EQ(rejected([](auto& options) { options.temperature.first = 0; }),
            "train: temperature must be a finite number above 0, got 0");
  EXPECT_EQ(rejected([](auto& options) { options.epochs = 0; }),
            "train: epochs must be at least 1, got 0");
  EXPECT_EQ(rejected([](auto& options) { options.batch_size = 0; }),
            "train: batch_size must be at least 1, got 0");
  EXPECT_EQ(rejected([](auto& options) { options.learning_rate = -0.1; }),
            "train: lr must be above 0, got -0.1");
  EXPECT_EQ(rejected([](auto& options) { options.learning_rate = std::nan(""); }),
            "train: lr must be above 0, got nan");
}

}  // namespace kelvin::train_test
