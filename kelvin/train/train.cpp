#include "kelvin/train/train.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/seeds.h"
#include "kelvin/data/batch_stream.h"
#include "kelvin/model/weights.h"
#include "kelvin/ops/reference_ops.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

constexpr auto kGenerator = "generator";
constexpr auto kAverageSteps = "average_steps";
constexpr auto kOptimizer = "optimizer/";
constexpr auto kWeights = "weights/";  // those that are trained, where their average is used

void check_options(const TrainOptions& options) {
  check_temperature("train", options.temperature.first);
  check(options.epochs >= 1, "train: epochs must be at least 1, got ", options.epochs);
  check(options.batch_size >= 1, "train: batch_size must be at least 1, got ", options.batch_size);
  check(std::isfinite(options.learning_rate) && options.learning_rate > 0,
        "train: lr must be above 0, got ", options.learning_rate);
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
  return count_batches(samples, options.batch_size);
}

LearningRateOptions learning_rate_options(const TrainOptions& options, int64_t samples) {
  const auto epoch = static_cast<double>(steps_per_epoch(options, samples));
  LearningRateOptions result{.learning_rate = options.learning_rate,
                             .schedule = options.schedule,
                             .warmup_steps = std::llround(options.warmup_epochs * epoch),
                             .total_steps = total_steps(options, samples),
                             .decay = options.decay_rate};
  for (const double milestone : options.milestones) {
    result.milestones.push_back(std::llround(milestone * epoch));
  }
  return result;
}

double temperature_factor(LearningRateScaling scaling, double temperature) {
  if (scaling == LearningRateScaling::linear) return temperature;
  return scaling == LearningRateScaling::sqrt ? std::sqrt(temperature) : 1;
}

NamedTensors with_prefix(const std::string& prefix, const NamedTensors& tensors) {
  NamedTensors prefixed;
  for (const auto& [name, tensor] : tensors) prefixed[prefix + name] = tensor;
  return prefixed;
}

NamedTensors without_prefix(const std::string& prefix, const NamedTensors& tensors) {
  NamedTensors own;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(prefix)) own[name.substr(prefix.size())] = tensor;
  }
  return own;
}

const torch::Tensor& required(const NamedTensors& state, const std::string& name) {
  const auto found = state.find(name);
  check(found != state.end(), "train: the state to go on from has no '", name, "'");
  return found->second;
}

int64_t required_count(const NamedTensors& state, const std::string& name) {
  const auto& tensor = required(state, name);
  check(tensor.numel() == 1 && tensor.scalar_type() == torch::kInt64,
        "train: the state to go on from: '", name, "' must be one whole number");
  return tensor.item<int64_t>();
}

// A checkpoint is written of finite numbers alone.
void check_finite(const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    check(!tensor.is_floating_point() || torch::isfinite(tensor).all().item<bool>(),
          "train: the state to go on from: '", name, "' must be finite, holds NaN or infinity");
  }
}

void set_generator(const torch::Tensor& state) {
  auto generator = at::detail::getDefaultCPUGenerator();
  const auto now = generator.get_state();
  check(state.sizes() == now.sizes() && state.scalar_type() == now.scalar_type(),
        "train: the state to go on from: '", kGenerator, "' must be ", now.scalar_type(), " of ",
        now.sizes(), ", is ", state.scalar_type(), " of ", state.sizes());
  try {
    generator.set_state(state);
  } catch (const c10::Error&) {
    check(false, "train: the state to go on from: '", kGenerator, "' is not one of random numbers");
  }
}

Loss default_loss() {
  Settings settings("train", {});
  return losses().find("cross_entropy").make(settings);
}

// One training from beginning, or snapshot, to end.
class Training {
 public:
  Training(Model& model, const Dataset& dataset, const TrainOptions& options,
           const std::vector<TrainObserver*>& observers)
      : model_(model),
        dataset_(dataset),
        options_(options),
        observers_(observers),
        samples_(dataset.train.size()),
        learning_rate_(learning_rate_options(options, samples_)),
        loss_(options.loss ? options.loss : default_loss()),
        device_(model.parameters().front().device()),
        state_{.model = model,
               .options = options,
               .total_steps = learning_rate_.total_steps,
               .steps_per_epoch = steps_per_epoch(options, samples_)} {
    check(samples_ > 0, "train: dataset '", dataset.name, "' has no training images");
    check_temperatures(options.temperature, learning_rate_.total_steps, state_.steps_per_epoch);
    use_channels_last(model);
    if (options.temperature.schedule == TemperatureSchedule::learned) {
      log_temperature_ = torch::tensor(std::log(options.temperature.first), torch::kFloat64)
                             .to(device_)
                             .set_requires_grad(true);
    }
    optimizer_.emplace(model, options.optimizer, log_temperature_);
    if (options.ema_decay > 0) ema_.emplace(model, options.ema_decay);
    state_.ema = ema_ ? &*ema_ : nullptr;
    state_.temperature = temperature_of_step(0);
    state_.snapshot = [this] { return snapshot(); };
  }

  void restore(const TrainSnapshot& start) {
    check(start.epoch <= options_.epochs, "train.epochs: must be at least ", start.epoch,
          ", the epochs that are done, got ", options_.epochs);
    check(start.step <= state_.total_steps, "train: ", start.step,
          " steps are done, more than these settings have in all, ", state_.total_steps);
    check_finite(start.weights);
    check_finite(without_prefix(kWeights, start.state));
    auto own = weights_of(model_);
    if (ema_) {
      ema_->restore(start.weights, required_count(start.state, kAverageSteps));
      copy_weights(without_prefix(kWeights, start.state), own, "train: the weights to go on from");
    } else {
      copy_weights(start.weights, own, "train: the weights to go on from");
    }
    optimizer_->restore(without_prefix(kOptimizer, start.state));
    if (log_temperature_.defined()) {
      torch::NoGradGuard no_grad;
      const auto learned = required(start.state, kLogTemperature);
      check(learned.dim() == 0 && learned.is_floating_point(), "train: the state to go on from: '",
            kLogTemperature, "' must be one number");
      log_temperature_.copy_(learned);
    }
    set_generator(required(start.state, kGenerator));
    state_.epoch = start.epoch;
    state_.step = start.step;
    state_.images = start.images;
    state_.temperature = start.temperature;
    if (start.step > 0) state_.learning_rate = learning_rate_of_step(start.step - 1);
    epoch_steps_ = start.epoch_steps;
    sums_ = start.sums;
  }

  TrainResult run(const std::function<bool()>& should_stop) {
    const BatchMaker batches(dataset_,
                             {.augmentation = options_.augmentation,
                              .seed = derive_seed(options_.seed, "augment"),
                              .views = loss_.views,
                              .on_all_cores = false});  // the others train the network meanwhile
    const uint64_t order_seed = derive_seed(options_.seed, "order");
    model_.train();
    for (auto* observer : observers_) observer->before_training(state_);
    while (state_.epoch < options_.epochs) {
      auto order = epoch_order(order_seed, state_.epoch, samples_);
      const bool is_over = epoch_steps_ >= state_.steps_per_epoch;
      const auto done = is_over ? samples_ : epoch_steps_ * options_.batch_size;
      order.erase(order.begin(), order.begin() + done);
      BatchStream stream(batches, dataset_.train, std::move(order), options_.batch_size,
                         state_.epoch);
      while (auto batch = next_of(stream)) {
        step(*batch);
        for (auto* observer : observers_) observer->after_step(state_);
        if (should_stop()) return stopped();
      }
      finish_epoch();
    }
    if (ema_) ema_->exchange();
    return result(TrainOutcome::finished);
  }

 private:
  double temperature_of_step(int64_t step) const {
    if (log_temperature_.defined()) return std::exp(log_temperature_.item<double>());
    return temperature_at(options_.temperature, step, state_.total_steps, state_.steps_per_epoch);
  }

  // At the temperature that training has at that step.
  double learning_rate_of_step(int64_t step) const {
    return learning_rate(learning_rate_, step) *
           temperature_factor(options_.learning_rate_scaling, state_.temperature);
  }

  torch::Tensor temperature_tensor() const {
    if (log_temperature_.defined()) return log_temperature_.exp();
    return torch::tensor(state_.temperature, torch::kFloat64);
  }

  // Seconds since it was asked last.
  double lap() {
    if (!options_.seconds) return 0;
    const double now = options_.seconds();
    return now - std::exchange(lap_start_, now);
  }

  std::optional<Batch> next_of(BatchStream& stream) {
    lap();
    auto batch = stream.next();
    state_.seconds.data = lap();
    return batch;
  }

  torch::Tensor logits_of(const Batch& batch) const {
    const PrecisionScope precision(options_.precision, device_.type());
    const auto type = model_.parameters().front().scalar_type();
    const auto logits = model_.forward(batch.images.to(device_, type));
    return logits.to(type);
  }

  void step(const Batch& batch) {
    const ReferenceOpsScope path(options_.uses_reference_ops);
    lap();
    state_.temperature = temperature_of_step(state_.step);
    state_.learning_rate = learning_rate_of_step(state_.step);
    check(std::isfinite(state_.temperature) && state_.temperature > 0,
          "train: the learned temperature became ", state_.temperature, " at step ", state_.step,
          " (loss ", state_.loss, ", lr = ", state_.learning_rate, "); try a smaller lr");
    optimizer_->zero_gradients();
    const auto targets = loss_.targets(batch.labels).to(device_);
    const auto values = loss_(logits_of(batch), targets, temperature_tensor());
    const auto loss = values.loss.item<double>();
    check(std::isfinite(loss) || state_.step > 0, "train: the loss is ", loss,
          " before the first step: the initial logits over T = ", state_.temperature,
          " are beyond float32; see init.scale, init.last_scale and train.temperature");
    check(std::isfinite(loss), "train: the loss became ", loss, " at step ", state_.step,
          " (T = ", state_.temperature, ", lr = ", state_.learning_rate,
          "); try a smaller lr or a longer warm-up");
    state_.seconds.forward = lap();
    values.loss.backward();
    state_.seconds.backward = lap();
    optimizer_->step(state_.learning_rate);
    if (ema_) ema_->update();
    state_.seconds.optimizer = lap();
    ++state_.step;
    ++epoch_steps_;
    count(values, targets, loss);
  }

  void count(const LossValues& values, const torch::Tensor& targets, double loss) {
    const auto images = targets.size(0) / loss_.views;
    const auto count = static_cast<double>(images);
    const auto views = static_cast<double>(loss_.views);
    const auto entropy = values.entropies.sum().item<double>() / views;
    const auto right = (values.predictions == targets).sum().item<double>() / views;
    state_.images += images;
    state_.loss = loss;
    state_.entropy = entropy / count;
    state_.accuracy = right / count;
    sums_.loss += loss * count;
    sums_.entropy += entropy;
    sums_.right += right;
    sums_.samples += images;
  }

  void finish_epoch() {
    const auto count = static_cast<double>(sums_.samples);
    state_.loss = sums_.loss / count;
    state_.entropy = sums_.entropy / count;
    state_.accuracy = sums_.right / count;
    ++state_.epoch;
    sums_ = {};
    epoch_steps_ = 0;
    for (auto* observer : observers_) observer->after_epoch(state_);
  }

  TrainResult stopped() {
    for (auto* observer : observers_) observer->at_stop(state_);
    return result(TrainOutcome::stopped);
  }

  TrainResult result(TrainOutcome outcome) const {
    return {.outcome = outcome, .temperature = state_.temperature, .steps = state_.step};
  }

  TrainSnapshot snapshot() const {
    TrainSnapshot now{.epoch = state_.epoch,
                      .step = state_.step,
                      .epoch_steps = epoch_steps_,
                      .images = state_.images,
                      .sums = sums_,
                      .temperature = state_.temperature,
                      .weights = ema_ ? ema_->tensors() : weights_of(model_),
                      .state = with_prefix(kOptimizer, optimizer_->state())};
    now.state[kGenerator] = at::detail::getDefaultCPUGenerator().get_state();
    if (log_temperature_.defined()) now.state[kLogTemperature] = log_temperature_;
    if (ema_) {
      now.state.merge(with_prefix(kWeights, weights_of(model_)));
      now.state[kAverageSteps] = torch::tensor(ema_->steps(), torch::kInt64);
    }
    return now;
  }

  Model& model_;
  const Dataset& dataset_;
  const TrainOptions& options_;
  const std::vector<TrainObserver*>& observers_;
  const int64_t samples_;
  const LearningRateOptions learning_rate_;
  const Loss loss_;
  const torch::Device device_;
  torch::Tensor log_temperature_;
  std::optional<Optimizer> optimizer_;
  std::optional<WeightEma> ema_;
  TrainState state_;
  int64_t epoch_steps_ = 0;
  EpochSums sums_;
  double lap_start_ = 0;
};

}  // namespace

LearningRateScaling learning_rate_scaling_of(const std::string& name) {
  if (name == "none") return LearningRateScaling::none;
  if (name == "linear") return LearningRateScaling::linear;
  if (name == "sqrt") return LearningRateScaling::sqrt;
  check(false, "train.lr_scale_with_t: must be none, linear or sqrt, got '", name, "'");
  return LearningRateScaling::none;
}

int64_t total_steps(const TrainOptions& options, int64_t samples) {
  return options.epochs * steps_per_epoch(options, samples);
}

double last_temperature(const TrainOptions& options, int64_t samples) {
  const auto total = total_steps(options, samples);
  return temperature_at(options.temperature, std::max<int64_t>(total - 1, 0), total,
                        std::max<int64_t>(steps_per_epoch(options, samples), 1));
}

TrainResult train(Model& model, const Dataset& dataset, const TrainOptions& options,
                  const std::vector<TrainObserver*>& observers,
                  const std::function<bool()>& should_stop, const TrainSnapshot* start) {
  check_options(options);
  Training training(model, dataset, options, observers);
  if (start != nullptr) training.restore(*start);
  return training.run(should_stop);
}

void check_start(Model& model, const Dataset& dataset, const TrainOptions& options,
                 const TrainSnapshot& start) {
  check_options(options);
  const std::vector<TrainObserver*> nobody;
  Training(model, dataset, options, nobody).restore(start);
}

}  // namespace kelvin
