#include "kelvin/experiment/trained_network.h"

#include <torch/torch.h>

#include "kelvin/core/check.h"
#include "kelvin/experiment/checkpoint.h"
#include "kelvin/experiment/prepared_model.h"
#include "kelvin/model/weights.h"
#include "kelvin/train/train.h"

namespace kelvin {

TrainedNetwork open_run(const std::filesystem::path& run, const Config& changes,
                        const RunContext& context) {
  auto config = Config::load(run / "config.toml");
  config.merge(changes);
  auto settings = RunSettings::from(config);
  auto data = load_run_data(settings, context);
  const auto model = settings.build_model(shape_for(data.own));
  load_weights(last_weights(run), *model);
  model->to(device_of(settings.device));
  settings.trained_temperature =
      saved_temperature(run).value_or(last_temperature(settings.train, data.own.train.size()));
  return {.settings = std::move(settings), .data = std::move(data), .model = model};
}

TrainedNetwork open_weights(const Config& config, const RunContext& context) {
  auto settings = RunSettings::from(config);
  check(!settings.init.pretrained.empty(), "init.pretrained: must name a file of weights");
  auto data = load_run_data(settings, context);
  auto model = prepared_model(settings, data.own, context);
  return {.settings = std::move(settings), .data = std::move(data), .model = std::move(model)};
}

}  // namespace kelvin
