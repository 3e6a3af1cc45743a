#include "kelvin/experiment/tasks/plan.h"

#include <torch/torch.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/experiment/config/run_settings.h"
#include "kelvin/experiment/evaluate/trained_network.h"
#include "kelvin/experiment/run/initial_logits.h"
#include "kelvin/experiment/run/trajectory.h"
#include "kelvin/measures/measure.h"
#include "kelvin/model/description.h"
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
  const int64_t weights = train.ema_decay > 0 ? 2 : 1;
  return (weights + memories) * bytes_of(weights_of(model));
}

// Looks at the network during training: at the start, after each epoch, at log-spaced steps.
int64_t observations(const RunSettings& settings, int64_t steps) {
  const auto spaced = log_spaced_steps(settings.measure.steps_per_decade, steps);
  return 1 + settings.train.epochs + static_cast<int64_t>(spaced.size());
}

// Samples of OOD datasets that are looked at in the end, as far as settings tell: the size of a
// split that is taken whole is known only to those who read it.
int64_t ood_samples(const RunSettings& settings) {
  bool needs_test = !settings.measure.detectors.empty();
  bool needs_train = false;
  for (const auto& name : settings.measure.names) {
    const auto measure = settings.make_measure(name);
    needs_test |= measure->needs().ood;
    needs_train |= needs_ood_training(*measure);
  }
  const auto& request = settings.request;
  auto train = settings.measure.train_samples;
  if (request.train_samples > 0) train = std::min(train, request.train_samples);
  const auto of_each = (needs_train ? train : 0) + (needs_test ? request.test_samples : 0);
  return of_each * static_cast<int64_t>(settings.ood.size());
}

}  // namespace

RunCosts run_costs(const RunSettings& settings, const Dataset& data, const RunContext& context) {
  const auto model = settings.build_model(shape_for(settings, data));
  model->to(device_of(settings.device));
  StepClock clock(context);
  train(*model, data, settings.train, {&clock},
        [&] { return clock.has_enough() || context.should_stop(); });

  const auto samples = data.train.size();
  const auto steps = total_steps(settings.train, samples);
  const auto batch = std::min(settings.train.batch_size, samples);
  const double step = clock.step_seconds();
  // A step goes forward once, and backward at twice the cost.
  const auto views = settings.train.loss.views;
  const double forward = step / 3 / static_cast<double>(batch * views);
  // Views besides the images themselves, if the loss compares them.
  const auto times = views > 1 ? 1 + views : 1;
  const auto looked_at = times * (std::min(settings.measure.epoch_samples, samples) +
                                  std::min(settings.measure.epoch_samples, data.test.size()));
  const auto measured =
      std::min(settings.measure.train_samples, samples) + data.test.size() + ood_samples(settings);
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

namespace {

using Json = nlohmann::ordered_json;

// A part of the training images, enough for norms.  Decoding all of a large dataset would take
// minutes and all memory.
Dataset load_part(const RunSettings& settings, int64_t samples, const RunContext& context) {
  constexpr int64_t kMostSamples = 1024;
  constexpr int64_t kPixels = kMostSamples * 32 * 32;
  auto request = settings.request;
  const auto shape = dataset_facts(settings.dataset, request).shape;
  const auto most = std::max(
      samples, std::clamp<int64_t>(kPixels / (shape.height * shape.width), 64, kMostSamples));
  if (request.train_samples == 0 || request.train_samples > most) request.train_samples = most;
  request.test_samples = 1;
  request.data_folder = context.data_folder;
  auto part = load_dataset(settings.dataset, request);
  check_trainable(settings, part);
  return part;
}

Json json_of(const InitialLogits& initial, double temperature) {
  Json json = {{"initial_logits_norm_per_sample", initial.norm},
               {"initial_logits_norm_per_sample_over_t", initial.norm / temperature},
               {"initial_logits_norm_running_statistics", initial.norm_running},
               {"initial_features_norm_per_sample", initial.features_norm},
               {"last_weight_deviation", initial.deviation},
               {"norm_samples", initial.samples}};
  if (initial.expected) json["initial_logits_norm_expected"] = *initial.expected;
  if (initial.bound) json["initial_logits_norm_bound"] = *initial.bound;
  return json;
}

// To be counted, and to train on for a moment; pictures stay on disk.
Dataset load_whole(const RunSettings& settings, const RunContext& context) {
  auto request = settings.request;
  request.cache_images = false;
  request.data_folder = context.data_folder;
  return load_dataset(settings.dataset, request);
}

Json json_of(const RunCosts& costs) {
  return {{"estimated_minutes",
           costs.training_minutes + costs.observing_minutes + costs.measuring_minutes},
          {"estimated_training_minutes", costs.training_minutes},
          {"estimated_observing_minutes", costs.observing_minutes},
          {"estimated_measuring_minutes", costs.measuring_minutes},
          {"estimated_memory_bytes", costs.memory_bytes},
          {"estimated_disk_bytes", costs.disk_bytes}};
}

}  // namespace

Json plan(const Config& resolved, const RunContext& context) {
  const auto settings = RunSettings::from(resolved);
  const auto part = load_part(settings, /*samples=*/0, context);
  const auto model = prepared_model(settings, part);
  const auto shape = shape_for(settings, part);
  const auto description = describe(*model, shape);
  const auto macs_of_views = static_cast<double>(description.macs * settings.train.loss.views);
  Json plan = {{"parameters", description.parameters},
               {"weight_layers", description.layers.size()},
               {"macs_per_image", description.macs},
               {"training_gflop_per_1000_images", 6e-6 * macs_of_views}};
  plan.update(json_of(run_costs(settings, load_whole(settings, context), context)));
  if (model->head() == nullptr) return plan;
  const auto initial = initial_logits(*model, part, affordable_samples(*model, shape),
                                      !settings.init.pretrained.empty());
  plan.update(json_of(initial, settings.train.temperature.first));
  return plan;
}

Json initial_norms(const Config& config, const std::vector<int64_t>& seeds, int64_t samples,
                   const RunContext& context) {
  auto settings = RunSettings::from(config);
  const auto part = load_part(settings, samples, context);
  const bool is_pretrained = !settings.init.pretrained.empty();
  auto norms = Json::array();
  for (const auto seed : seeds) {
    settings.seed = seed;
    const auto model = prepared_model(settings, part);
    const auto count =
        samples > 0 ? samples : affordable_samples(*model, shape_for(settings, part));
    auto line = json_of(initial_logits(*model, part, count, is_pretrained),
                        settings.train.temperature.first);
    line["seed"] = seed;
    line["parameters"] = parameter_count(*model);
    norms.push_back(line);
    context.report_progress({.phase = settings.model,
                             .done = static_cast<int64_t>(norms.size()),
                             .total = static_cast<int64_t>(seeds.size())});
    check(!context.should_stop(), "stopped");
  }
  return norms;
}

namespace {

// The layers of a model, without any data.
Json describe_model(const DescribeModelRequest& request, const RunContext& /*context*/) {
  const auto& [config, shape, classes] = request;
  auto settings = config.section("model");
  std::string name;
  settings.read("name", name);
  check(shape.size() == 3, "--input: must be channels, height and width, got ", shape.size(),
        " numbers");
  for (const auto size : shape) {
    check(size >= 1 && size <= 1024, "--input: sizes must be from 1 to 1024, got ", size);
  }
  check(classes >= 1 && classes <= 1'000'000, "--classes: must be from 1 to 1000000, got ",
        classes);
  const ModelShape model_shape{
      .channels = shape[0], .height = shape[1], .width = shape[2], .classes = classes};
  const auto build = models().find(name).read(model_shape, settings);
  settings.reject_unknown_keys();
  config.reject_unknown_sections({"model"});
  const auto model = build();
  const auto description = describe(*model, model_shape);
  auto layers = Json::array();
  for (const auto& layer : description.layers) {
    layers.push_back({{"name", layer.name},
                      {"weight", layer.weight},
                      {"input", layer.input},
                      {"output", layer.output},
                      {"parameters", layer.parameters},
                      {"macs", layer.macs}});
  }
  return {{"model", name},
          {"settings", settings.resolved()},
          {"parameters", description.parameters},
          {"macs", description.macs},
          {"layers", layers}};
}

Json plan_task(const PlanRequest& request, const RunContext& context) {
  return plan(request.resolved, context);
}

Json initial_norms_task(const InitialNormsRequest& request, const RunContext& context) {
  return initial_norms(request.config, request.seeds, request.samples, context);
}

const bool plan_registered =
    add_task(plan_task) && add_task(initial_norms_task) && add_task(describe_model);

}  // namespace
}  // namespace kelvin
