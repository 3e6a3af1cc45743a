#include "kelvin/train/train.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>
#include <vector>

#include "kelvin/core/seeds.h"
#include "kelvin/data/batches.h"
#include "tests/support/easy_training.h"
#include "tests/support/errors.h"

namespace kelvin::train_test {

std::vector<torch::Tensor> weights_after(const TrainOptions& options) {
  const auto model = small_model();
  train(*model, dark_and_bright(), options, {}, kNever);
  return model->parameters();
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
