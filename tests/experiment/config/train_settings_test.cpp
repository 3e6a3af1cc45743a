#include "kelvin/experiment/config/train_settings.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support/errors.h"

namespace kelvin::train_settings_test {

TrainOptions read(const Values& values) {
  Settings settings("train", values);
  auto options = read_train(settings, 5);
  settings.reject_unknown_keys();
  return options;
}

std::string refused(const Values& values) {
  return error_of([&] { read(values); });
}

TEST(TrainSettings, TakeEverythingFromTheConfig) {
  const auto options = read({{"temperature", 100},     {"temperature_schedule", "cosine"},
                             {"temperature_end", 0.5}, {"loss", "cross_entropy"},
                             {"loss_smoothing", 0.1},  {"lr", 0.3},
                             {"schedule", "step"},     {"milestones", {3, 6.5}},
                             {"decay_rate", 0.2},      {"lr_scale_with_t", "sqrt"},
                             {"optimizer", "adamw"},   {"beta1", 0.8},
                             {"beta2", 0.9},           {"epsilon", 1e-6},
                             {"weight_decay", 0.05},   {"decay_vectors", false},
                             {"head_lr_scale", 0.1},   {"clip_norm", 1},
                             {"ema", 0.999},           {"precision", "bf16"},
                             {"plain", true}});
  EXPECT_EQ(options.temperature.first, 100);
  EXPECT_EQ(options.temperature.schedule, TemperatureSchedule::cosine);
  EXPECT_EQ(options.temperature.last, 0.5);
  EXPECT_EQ(options.schedule, Schedule::step);
  EXPECT_EQ(options.milestones, (std::vector<double>{3, 6.5}));
  EXPECT_EQ(options.decay_rate, 0.2);
  EXPECT_EQ(options.learning_rate_scaling, LearningRateScaling::sqrt);
  EXPECT_EQ(options.optimizer.kind, OptimizerKind::adamw);
  EXPECT_EQ(options.optimizer.beta1, 0.8);
  EXPECT_EQ(options.optimizer.beta2, 0.9);
  EXPECT_EQ(options.optimizer.epsilon, 1e-6);
  EXPECT_EQ(options.optimizer.weight_decay, 0.05);
  EXPECT_FALSE(options.optimizer.decays_vectors);
  EXPECT_EQ(options.optimizer.head_learning_rate_scale, 0.1);
  EXPECT_EQ(options.optimizer.clip_norm, 1);
  EXPECT_EQ(options.ema_decay, 0.999);
  EXPECT_EQ(options.precision, Precision::bf16);
  EXPECT_TRUE(options.uses_reference_ops);
  EXPECT_EQ(options.seed, 5U);
}

TEST(TrainSettings, ChooseALossWithItsOwnSettings) {
  const auto logits = torch::tensor({{2.0, 0.0, -1.0}}, torch::kFloat64);
  const auto label = torch::zeros({1}, torch::kInt64);
  const auto temperature = torch::tensor(1.0, torch::kFloat64);
  const auto loss = [&](const Values& values) {
    return read(values).loss(logits, label, temperature).loss.item<double>();
  };
  EXPECT_GT(loss({{"loss_smoothing", 0.5}}), loss({}));
  EXPECT_LT(loss({{"loss", "focal"}, {"loss_gamma", 5}}), loss({{"loss", "focal"}}));
  const auto message = refused({{"loss", "focal"}, {"loss_smoothing", 0.1}});
  EXPECT_TRUE(message.starts_with("train.loss_smoothing: no such setting")) << message;
}

TEST(TrainSettings, NeedAnEndWhereTheTemperatureMoves) {
  EXPECT_EQ(refused({{"temperature_schedule", "warm"}}),
            "train.temperature_end: the schedule warm needs a temperature above 0 to go to, got 0");
  EXPECT_EQ(refused({{"temperature", 3}, {"temperature_end", 7}}),
            "train.temperature_end: is for the schedules linear, cosine, cyclic and warm, not for "
            "constant");
}

TEST(TrainSettings, RejectWhatCannotBe) {
  EXPECT_EQ(refused({{"temperature", 0}}),
            "train.temperature: must be a finite number above 0, got 0");
  EXPECT_EQ(refused({{"schedule", "step"}}),
            "train.milestones: the schedule step needs the epochs at which the rate falls, as in "
            "[30, 60]");
  EXPECT_EQ(refused({{"schedule", "step"}, {"milestones", {6, 3}}}), "train.milestones: must rise");
  EXPECT_EQ(refused({{"ema", 1}}), "train.ema: must be in [0, 1), got 1");
  EXPECT_EQ(refused({{"clip_norm", -1}}),
            "train.clip_norm: must be a finite number, not below 0, got -1");
  EXPECT_EQ(refused({{"beta2", 1}}), "train.beta2: must be in [0, 1), got 1");
}

TEST(TrainSettings, HaveBounds) {
  EXPECT_EQ(refused({{"warmup_epochs", 1e30}}),
            "train.warmup_epochs: must be from 0 to 1e+06 epochs, got 1e+30");
  EXPECT_EQ(refused({{"epochs", int64_t{9'000'000'000'000'000'000}}}),
            "train.epochs: must be from 1 to 1e+06, got 9000000000000000000");
  EXPECT_EQ(refused({{"milestones", {3}}}),
            "train.milestones: is for the schedule step, not for cosine");
  EXPECT_EQ(refused({{"temperature_schedule", "step"}, {"temperature_factor", 1e-100}}),
            "train.temperature_factor: must be from 1e-30 to 1e+30, which float32 can hold, got "
            "1e-100");
  EXPECT_EQ(refused({{"temperature_schedule", "step"},
                     {"temperature_factor", 1e-9},
                     {"temperature_period", 0.01}}),
            "train: at the last step: temperature must be a finite number above 0, got 0");
  EXPECT_EQ(refused({{"temperature_schedule", "step"},
                     {"temperature_factor", 1e-9},
                     {"temperature_period", 1},
                     {"epochs", 3}}),
            "train.temperature at the last step: must be from 1e-12 to 1e+12, got 1e-18");
}

TEST(TrainSettings, SayWhenCheckpointsAreWritten) {
  Settings settings("train", {{"checkpoint_steps", 50}, {"keep_checkpoints", true}});
  const auto checkpoints = read_checkpoints(settings);
  EXPECT_EQ(checkpoints.steps, 50);
  EXPECT_TRUE(checkpoints.keeps_all);
  Settings bad("train", {{"checkpoint_steps", -1}});
  EXPECT_EQ(error_of([&] { read_checkpoints(bad); }),
            "train.checkpoint_steps: must be at least 0, got -1");
}

}  // namespace kelvin::train_settings_test
