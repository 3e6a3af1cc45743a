#include "kelvin/train/train.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/data/batch_stream.h"
#include "kelvin/math/softmax.h"
#include "kelvin/train/loss.h"

namespace kelvin {
namespace {

void check_options(const TrainOptions& options) {
  check_temperature("train", options.temperature);
  check(options.epochs >= 1, "train: epochs must be at least 1, got ", options.epochs);
  check(options.batch_size >= 1, "train: batch_size must be at least 1, got ", options.batch_size);
  check(std::isfinite(options.rate) && options.rate > 0, "train: lr must be above 0, got ",
        options.rate);
}

void set_rate(torch::optim::SGD& optimizer, double rate) {
  for (auto& group : optimizer.param_groups()) {
    static_cast<torch::optim::SGDOptions&>(group.options()).lr(rate);
  }
}

// Convolutions run faster when weights and maps are stored channels-last.
void use_channels_last(Model& model) {
  torch::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) {
    if (parameter.dim() == 4) {
      parameter.set_data(parameter.contiguous(torch::MemoryFormat::ChannelsLast));
    }
  }
}

int64_t steps_per_epoch(const TrainOptions& options, int64_t samples) {
  return (samples + options.batch_size - 1) / options.batch_size;
}

}  // namespace

int64_t total_steps(const TrainOptions& options, int64_t samples) {
  return options.epochs * steps_per_epoch(options, samples);
}

TrainOutcome train(Model& model, const Dataset& dataset, const TrainOptions& options,
                   const std::vector<TrainObserver*>& observers,
                   const std::function<bool()>& should_stop) {
  check_options(options);
  const int64_t samples = dataset.train.size();
  const RateOptions rate{
      .rate = options.rate,
      .schedule = options.schedule,
      .warmup_steps = std::llround(options.warmup_epochs *
                                   static_cast<double>(steps_per_epoch(options, samples))),
      .total_steps = total_steps(options, samples)};
  check(samples > 0, "train: dataset '", dataset.name, "' has no training images");
  const BatchMaker batches(dataset,
                           {.augmentation = options.augmentation,
                            .seed = named_seed(options.seed, "augment"),
                            .on_all_cores = false});  // the others train the network meanwhile
  const uint64_t order_seed = named_seed(options.seed, "order");

  use_channels_last(model);
  model.train();
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(options.rate)
                                                      .momentum(options.momentum)
                                                      .nesterov(options.nesterov)
                                                      .weight_decay(options.weight_decay));
  TrainState state{.model = model, .options = options, .total_steps = rate.total_steps};
  for (auto* observer : observers) observer->before_training(state);

  while (state.epoch < options.epochs) {
    BatchStream stream(batches, dataset.train, epoch_order(order_seed, state.epoch, samples),
                       options.batch_size, state.epoch);
    double loss_sum = 0;
    while (auto next = stream.next()) {
      const auto& batch = *next;
      const auto images = batch.labels.size(0);
      state.rate = learning_rate(rate, state.step);
      set_rate(optimizer, state.rate);
      optimizer.zero_grad();
      auto loss = cross_entropy(model.forward(batch.images), batch.labels, options.temperature);
      loss.backward();
      optimizer.step();

      state.loss = loss.item<double>();
      check(std::isfinite(state.loss), "train: the loss became ", state.loss, " at step ",
            state.step, " (T = ", options.temperature, ", lr = ", state.rate,
            "); try a smaller lr or a longer warm-up");
      loss_sum += state.loss * static_cast<double>(images);
      ++state.step;
      state.images += images;
      for (auto* observer : observers) observer->after_step(state);
      if (should_stop()) return TrainOutcome::stopped;
    }
    ++state.epoch;
    state.loss = loss_sum / static_cast<double>(samples);
    for (auto* observer : observers) observer->after_epoch(state);
  }
  return TrainOutcome::finished;
}

}  // namespace kelvin
