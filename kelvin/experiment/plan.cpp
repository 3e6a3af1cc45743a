#include "kelvin/experiment/plan.h"

#include <torch/torch.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/experiment/initial_logits.h"
#include "kelvin/experiment/prepared_model.h"
#include "kelvin/experiment/run_costs.h"
#include "kelvin/experiment/run_settings.h"
#include "kelvin/model/description.h"

namespace kelvin {
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
  const auto shape = shape_for(part);
  const auto description = describe(*model, shape);
  Json plan = {{"parameters", description.parameters},
               {"weight_layers", description.layers.size()},
               {"macs_per_image", description.macs},
               {"training_gflop_per_1000_images", 6e-6 * static_cast<double>(description.macs)}};
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
    const auto count = samples > 0 ? samples : affordable_samples(*model, shape_for(part));
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

}  // namespace kelvin
