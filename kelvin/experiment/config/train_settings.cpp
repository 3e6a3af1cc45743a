#include "kelvin/experiment/config/train_settings.h"

#include <algorithm>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/experiment/config/run_settings.h"

namespace kelvin {
namespace {

constexpr double kMostEpochs = 1e6;

void check_epochs(const std::string& key, double epochs) {
  check(epochs >= 0 && epochs <= kMostEpochs, key, ": must be from 0 to ", kMostEpochs,
        " epochs, got ", epochs);
}

TemperatureOptions read_temperature(Settings& settings) {
  TemperatureOptions options;
  std::string schedule = "constant";
  double end = 0;  // unset
  settings.read("temperature", options.first);
  settings.read("temperature_schedule", schedule);
  settings.read("temperature_end", end);
  settings.read("temperature_factor", options.factor);
  settings.read("temperature_period", options.period_epochs);
  options.schedule = temperature_schedule_of(schedule);
  check_temperature_setting(settings.full_name("temperature"), options.first);
  check_not_negative(settings.full_name("temperature_end"), end);
  if (end > 0) check_temperature_setting(settings.full_name("temperature_end"), end);
  check_above_zero(settings.full_name("temperature_factor"), options.factor);
  check_above_zero(settings.full_name("temperature_period"), options.period_epochs);
  using enum TemperatureSchedule;
  const bool has_end = options.schedule == linear || options.schedule == cosine ||
                       options.schedule == cyclic || options.schedule == warm;
  check(has_end || end == 0, settings.full_name("temperature_end"),
        ": is for the schedules linear, cosine, cyclic and warm, not for ", schedule);
  check(!has_end || end > 0, settings.full_name("temperature_end"), ": the schedule ", schedule,
        " needs a temperature above 0 to go to, got ", end);
  options.last = has_end ? end : options.first;
  return options;
}

OptimizerOptions read_optimizer(Settings& settings) {
  OptimizerOptions options;
  std::string name = "sgd";
  settings.read("optimizer", name);
  settings.read("momentum", options.momentum);
  settings.read("nesterov", options.nesterov);
  settings.read("beta1", options.beta1);
  settings.read("beta2", options.beta2);
  settings.read("epsilon", options.epsilon);
  settings.read("weight_decay", options.weight_decay);
  settings.read("decay_vectors", options.decays_vectors);
  settings.read("head_lr_scale", options.head_learning_rate_scale);
  settings.read("clip_norm", options.clip_norm);
  options.kind = optimizer_of(name);
  check_share(settings.full_name("momentum"), options.momentum);
  check(!options.nesterov || options.momentum > 0, settings.full_name("nesterov"),
        ": needs a momentum above 0");
  check_share(settings.full_name("beta1"), options.beta1);
  check_share(settings.full_name("beta2"), options.beta2);
  check_above_zero(settings.full_name("epsilon"), options.epsilon);
  check_not_negative(settings.full_name("weight_decay"), options.weight_decay);
  check_not_negative(settings.full_name("head_lr_scale"), options.head_learning_rate_scale);
  check_not_negative(settings.full_name("clip_norm"), options.clip_norm);
  return options;
}

void read_rate(Settings& settings, TrainOptions& train) {
  std::string schedule = "cosine";
  std::string scaling = "none";
  settings.read("lr", train.learning_rate);
  settings.read("schedule", schedule);
  settings.read("milestones", train.milestones);
  settings.read("decay_rate", train.decay_rate);
  settings.read("warmup_epochs", train.warmup_epochs);
  settings.read("lr_scale_with_t", scaling);
  train.schedule = schedule_of(schedule);
  train.learning_rate_scaling = learning_rate_scaling_of(scaling);
  check_above_zero(settings.full_name("lr"), train.learning_rate);
  check_above_zero(settings.full_name("decay_rate"), train.decay_rate);
  check_epochs(settings.full_name("warmup_epochs"), train.warmup_epochs);
  check(train.schedule != Schedule::step || !train.milestones.empty(),
        settings.full_name("milestones"),
        ": the schedule step needs the epochs at which the rate falls, as in [30, 60]");
  check(train.schedule == Schedule::step || train.milestones.empty(),
        settings.full_name("milestones"), ": is for the schedule step, not for ", schedule);
  check(std::is_sorted(train.milestones.begin(), train.milestones.end()),
        settings.full_name("milestones"), ": must rise");
  for (const double milestone : train.milestones) {
    check_epochs(settings.full_name("milestones"), milestone);
  }
}

}  // namespace

TrainOptions read_train(Settings& settings, uint64_t seed) {
  TrainOptions train;
  std::string loss = "cross_entropy";
  std::string precision = "fp32";
  train.temperature = read_temperature(settings);
  settings.read("loss", loss);
  settings.read_prefixed("loss_",
                         [&](Settings& own) { train.loss = losses().find(loss).make(own); });
  settings.read("epochs", train.epochs);
  settings.read("batch_size", train.batch_size);
  read_rate(settings, train);
  train.optimizer = read_optimizer(settings);
  settings.read("ema", train.ema_decay);
  settings.read("precision", precision);
  train.precision = precision_of(precision);
  settings.read("plain", train.uses_reference_ops);
  train.seed = seed;
  check(train.epochs >= 1 && static_cast<double>(train.epochs) <= kMostEpochs,
        settings.full_name("epochs"), ": must be from 1 to ", kMostEpochs, ", got ", train.epochs);
  // Any number of steps will do: schedules count in epochs.
  constexpr int64_t kSteps = 100;
  check_temperatures(train.temperature, train.epochs * kSteps, kSteps);
  check_temperature_setting(
      settings.full_name("temperature") + " at the last step",
      temperature_at(train.temperature, train.epochs * kSteps - 1, train.epochs * kSteps, kSteps));
  // Batch normalisation has no variance to divide by in a batch of one.
  check_count(settings.full_name("batch_size"), train.batch_size, 2);
  check_share(settings.full_name("ema"), train.ema_decay);
  return train;
}

CheckpointSettings read_checkpoints(Settings& settings) {
  CheckpointSettings checkpoints;
  settings.read("checkpoint_steps", checkpoints.steps);
  settings.read("keep_checkpoints", checkpoints.keeps_all);
  check(checkpoints.steps >= 0, settings.full_name("checkpoint_steps"),
        ": must be at least 0, got ", checkpoints.steps);
  return checkpoints;
}

}  // namespace kelvin
