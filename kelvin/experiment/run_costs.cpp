#include "kelvin/experiment/run_costs.h"

#include <torch/torch.h>

#include <algorithm>

#include "kelvin/experiment/trajectory.h"
#include "kelvin/measures/takes_test_split.h"
#include "kelvin/model/weights.h"

namespace kelvin {
namespace {

constexpr int64_t kMostSteps = 12;
constexpr double kEnoughSeconds = 4;

// When each step was over; the first ones prepare kernels and memory.
class StepClock : public TrainObserver {
 public:
  explicit StepClock(const RunContext& context) : context_(context) {}

  void before_training(const TrainState&) override { times_.push_back(context_.seconds()); }
  void after_step(const TrainState&) override { times_.push_back(context_.seconds()); }

  bool has_enough() const {
    const auto steps = static_cast<int64_t>(times_.size()) - 1;
    return steps >= kMostSteps || (steps >= 3 && times_.back() - times_.front() > kEnoughSeconds);
  }

  // The median, without the first if there are more.
  double step_seconds() const {
    std::vector<double> steps;
    for (size_t i = 1; i < times_.size(); ++i) steps.push_back(times_[i] - times_[i - 1]);
    if (steps.size() > 1) steps.erase(steps.begin());
    const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
    std::nth_element(steps.begin(), middle, steps.end());
    return *middle;
  }

 private:
  const RunContext& context_;
  std::vector<double> times_;
};

int64_t bytes_of(const NamedTensors& tensors) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

int64_t checkpoint_bytes(const TrainOptions& train, const Model& model) {
  const bool is_adam =
      train.optimizer.kind == OptimizerKind::adam || train.optimizer.kind == OptimizerKind::adamw;
  const int64_t memories = is_adam ? 2 : (train.optimizer.momentum > 0 ? 1 : 0);
  const int64_t weights = train.average_decay > 0 ? 2 : 1;
  return (weights + memories) * bytes_of(weights_of(model));
}

// Looks at the network during training: at the start, after each epoch, at log-spaced steps.
int64_t observations(const RunSettings& settings, int64_t steps) {
  const auto spaced = log_spaced_steps(settings.measure.steps_per_decade, steps);
  return 1 + settings.train.epochs + static_cast<int64_t>(spaced.size());
}

// Samples of foreign datasets that are looked at in the end, as far as settings tell: the size of a
// split that is taken whole is known only to those who read it.
int64_t foreign_samples(const RunSettings& settings) {
  bool needs_test = !settings.measure.detectors.empty();
  bool needs_train = false;
  for (const auto& name : settings.measure.names) {
    const auto measure = settings.make_measure(name);
    needs_test |= measure->needs().ood;
    needs_train |= needs_foreign_training(*measure);
  }
  const auto& request = settings.request;
  auto train = settings.measure.train_samples;
  if (request.train_samples > 0) train = std::min(train, request.train_samples);
  const auto of_each = (needs_train ? train : 0) + (needs_test ? request.test_samples : 0);
  return of_each * static_cast<int64_t>(settings.ood.size());
}

}  // namespace

RunCosts run_costs(const RunSettings& settings, const Dataset& data, const RunContext& context) {
  const auto model = settings.build_model(shape_for(data));
  model->to(device_of(settings.device));
  StepClock clock(context);
  train(*model, data, settings.train, {&clock},
        [&] { return clock.has_enough() || context.should_stop(); });

  const auto samples = data.train.size();
  const auto steps = total_steps(settings.train, samples);
  const auto batch = std::min(settings.train.batch_size, samples);
  const double step = clock.step_seconds();
  // A step goes forward once, and backward at twice the cost.
  const double forward = step / 3 / static_cast<double>(batch);
  const auto looked_at = std::min(settings.measure.epoch_samples, samples) +
                         std::min(settings.measure.epoch_samples, data.test.size());
  const auto measured = std::min(settings.measure.train_samples, samples) + data.test.size() +
                        foreign_samples(settings);
  const auto saved = settings.train.epochs +
                     (settings.checkpoints.steps > 0 ? steps / settings.checkpoints.steps : 0);
  const auto kept = settings.checkpoints.keeps_all ? saved : 2;
  return {.training_minutes = static_cast<double>(steps) * step / 60,
          .observing_minutes =
              static_cast<double>(observations(settings, steps) * looked_at) * forward / 60,
          .measuring_minutes = static_cast<double>(measured) * forward / 60,
          .memory_bytes = context.peak_memory(),
          .disk_bytes = (kept + 1) * checkpoint_bytes(settings.train, *model)};
}

}  // namespace kelvin
