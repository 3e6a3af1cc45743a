#include "kelvin/experiment/evaluate/trained_network.h"

#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/data/batches.h"
#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/experiment/run/checkpoints.h"
#include "kelvin/experiment/run/initial_logits.h"
#include "kelvin/model/weights.h"
#include "kelvin/train/train.h"

namespace kelvin {
namespace {

// Which settings of "init" are not as usual, as "init.scale = 1e+30".
std::string unusual_settings(const StartSettings& init) {
  const StartSettings usual;
  std::vector<std::string> unusual;
  const auto add = [&](const char* name, double value, double usual_value) {
    if (value != usual_value) unusual.push_back(c10::str("init.", name, " = ", value));
  };
  add("scale", init.options.scale, usual.options.scale);
  add("last_scale", init.options.last_scale, usual.options.last_scale);
  add("last_uniform", init.options.last_uniform, usual.options.last_uniform);
  add("deviation", init.options.std_dev, usual.options.std_dev);
  add("target_logits_norm", init.target_logits_norm, usual.target_logits_norm);
  if (!init.pretrained.empty()) unusual.push_back("init.pretrained = " + init.pretrained);
  return join(unusual, ", ");
}

// Somebody's code is run for those who trust it, which a config cannot say; and its weights are
// constants.
void check_is_architecture(const RunSettings& settings) {
  check(!models().find(settings.model).is_of_file, "model.name: ", settings.model,
        " can be measured, but neither trained nor be that of a run");
}

}  // namespace

std::shared_ptr<Model> prepared_model(const RunSettings& settings, const Dataset& dataset,
                                      const RunContext& context) {
  check_is_architecture(settings);
  auto model = settings.build_model(shape_for(settings, dataset));
  const auto& init = settings.init;
  if (!init.pretrained.empty()) {
    const auto choice = load_weights(init.pretrained, *model,
                                     {.reset_head = init.reset_head, .part = init.pretrained_part});
    if (!choice.empty()) context.inform(choice);
  }
  if (init.target_logits_norm > 0) {
    scale_to_norm(*model, dataset, init.target_logits_norm, !init.pretrained.empty());
  }
  return model;
}

void check_initial_logits(const RunSettings& settings, Model& model, const Dataset& dataset) {
  constexpr int64_t kSamples = 16;
  const auto sample = shuffled_sample(/*seed=*/0, kSamples, dataset.train.size());
  const bool uses_batches = settings.init.pretrained.empty() && sample.size() > 1;
  double largest = 0;
  extract(model, dataset, dataset,
          {.split = Split::train, .batch_statistics = uses_batches, .indices = sample},
          [&](const Record& record) {
            const auto of_record = record.logits.to(torch::kFloat64).abs().max().item<double>();
            if (!std::isnan(largest) && !(of_record <= largest)) largest = of_record;
          });
  const auto unusual = unusual_settings(settings.init);
  check(std::isfinite(largest), unusual.empty() ? "model.name = " + settings.model : unusual,
        ": the logits before training must be finite, hold NaN or infinity");
  const double temperature = settings.train.temperature.first;
  check(largest / temperature <= std::numeric_limits<float>::max() / kSamples,
        "train.temperature: the logits before training, up to ", largest,
        ", must be within float32 when they are divided by T, got T = ", temperature);
}

TrainedNetwork open_run(const std::filesystem::path& run, const Config& changes,
                        const RunContext& context) {
  auto config = Config::load(run / "config.toml");
  config.merge(changes);
  auto settings = RunSettings::from(config);
  check_is_architecture(settings);
  auto data = load_run_data(settings, context);
  const auto model = settings.build_model(shape_for(settings, data.own));
  load_weights(last_weights(run), *model);
  model->to(device_of(settings.device));
  settings.trained_temperature =
      saved_temperature(run).value_or(last_temperature(settings.train, data.own.train.size()));
  return {.settings = std::move(settings), .data = std::move(data), .model = model};
}

TrainedNetwork open_weights(const Config& config, const RunContext& context) {
  auto settings = RunSettings::from(config);
  check(!settings.init.pretrained.empty() || models().find(settings.model).is_of_file,
        "init.pretrained: must name a file of weights");
  auto data = load_run_data(settings, context);
  if (models().find(settings.model).is_of_file) {
    auto model = settings.build_model(shape_for(settings, data.own));
    model->to(device_of(settings.device));
    return {.settings = std::move(settings), .data = std::move(data), .model = std::move(model)};
  }
  auto model = prepared_model(settings, data.own, context);
  return {.settings = std::move(settings), .data = std::move(data), .model = std::move(model)};
}

}  // namespace kelvin
