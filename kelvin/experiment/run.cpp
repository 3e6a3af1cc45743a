#include "kelvin/experiment/run.h"

#include <torch/torch.h>

#include "kelvin/core/check.h"
#include "kelvin/data/fit.h"
#include "kelvin/experiment/checkpoint.h"
#include "kelvin/experiment/epoch_metrics.h"
#include "kelvin/experiment/measure_model.h"
#include "kelvin/experiment/prepared_model.h"
#include "kelvin/experiment/progress_observer.h"
#include "kelvin/experiment/run_settings.h"
#include "kelvin/model/description.h"
#include "kelvin/model/weights.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

Dataset load_own(const RunSettings& settings, const RunContext& context) {
  auto request = settings.request;
  request.data_folder = context.data_folder;
  return load_dataset(settings.dataset, request);
}

struct Data {
  Dataset own;
  std::vector<Dataset> foreign;
};

// Foreign images come as the network takes them, whatever their size and colours were.
std::vector<Dataset> load_foreign(const RunSettings& settings, const ImageShape& shape,
                                  const RunContext& context) {
  std::vector<Dataset> foreign;
  for (const auto& name : settings.ood) {
    DatasetRequest request = settings.request;
    request.data_folder = context.data_folder;
    request.classes = settings.ood_classes;
    request.validation_samples = 0;
    request.test_on_validation = false;
    request.image_size = shape.height;
    auto dataset = load_dataset(name, request);
    dataset.train = fit_to(dataset.train, shape);
    dataset.test = fit_to(dataset.test, shape);
    foreign.push_back(std::move(dataset));
  }
  return foreign;
}

// Said before hours of training rather than after.
void check_training_splits(const RunSettings& settings, const std::vector<Dataset>& foreign) {
  for (const auto& name : settings.measure.names) {
    const auto needs = settings.make_measure(name)->needs();
    if (!needs.ood || !needs.train_split) continue;
    for (const auto& dataset : foreign) {
      check(dataset.train.size() > 0, "dataset '", dataset.name,
            "' has no training images, which measure '", name, "' needs of foreign data");
    }
  }
}

// Likewise.
void check_attention(const RunSettings& settings, Model& model, const ModelShape& shape) {
  for (const auto& name : settings.measure.names) {
    if (!settings.make_measure(name)->needs().attention) continue;
    const auto taps = taps_of_one_image(model, shape, {.layers = false, .attention = true});
    check(!taps.attention().empty(), "measure.names: '", name, "' needs a model with attention, '",
          settings.model, "' has none");
  }
}

Data load_data(const RunSettings& settings, const RunContext& context) {
  auto own = load_own(settings, context);
  auto foreign = load_foreign(settings, own.test.shape(), context);
  check_training_splits(settings, foreign);
  return {.own = std::move(own), .foreign = std::move(foreign)};
}

void keep(const RunFolder& folder, const Measured& measured) {
  folder.add_readings(measured.readings);
  for (const auto& scores : measured.scores) folder.write_scores(scores);
}

// The pipeline: data, model, train, representations, measures, result.
RunStatus execute(const RunSettings& settings, const Data& data, Model& model,
                  const RunFolder& folder, const RunContext& context) {
  const auto& [dataset, foreign] = data;
  EpochMetrics metrics(dataset, settings, folder, context);
  ProgressObserver progress(context);
  const auto outcome =
      train(model, dataset, settings.train, {&metrics, &progress}, context.should_stop);
  if (outcome == TrainOutcome::stopped) return RunStatus::stopped;

  write_checkpoint(folder, model, total_steps(settings.train, dataset.train.size()));
  metrics.write_curves();
  if (const auto growth = metrics.norm_growth()) folder.add_readings({*growth});
  try {
    keep(folder, measure_model(model, dataset, foreign, settings, context));
  } catch (const MeasuringStopped&) {
    return RunStatus::stopped;
  }
  return RunStatus::finished;
}

}  // namespace

void run(const Config& config, const std::filesystem::path& output,
         const nlohmann::ordered_json& metadata, const RunContext& context) {
  const auto settings = RunSettings::from(config);
  // Data or pretrained weights that are not there leave no folder.
  const auto data = load_data(settings, context);
  check_trainable(settings, data.own);
  const auto model = prepared_model(settings, data.own);
  check_attention(settings, *model, shape_for(data.own));
  const auto folder = RunFolder::create(output, settings.resolved, metadata);
  try {
    folder.set_status(execute(settings, data, *model, folder, context));
  } catch (...) {
    folder.set_status(RunStatus::failed);
    throw;
  }
}

Readings measure_run(const std::filesystem::path& path, const std::vector<std::string>& measures,
                     const RunContext& context) {
  const auto folder = RunFolder::open(path);
  auto settings = RunSettings::from(Config::load(path / "config.toml"));
  if (!measures.empty()) {
    settings.measure.names = measures;
    settings.measure.detectors.clear();
  }
  const auto [dataset, foreign] = load_data(settings, context);
  const auto model = settings.build_model(shape_for(dataset));
  load_weights(last_weights(path), *model);
  const auto measured = measure_model(*model, dataset, foreign, settings, context);
  keep(folder, measured);
  return measured.readings;
}

Readings measure_weights(const Config& config, const RunContext& context) {
  const auto settings = RunSettings::from(config);
  check(!settings.init.pretrained.empty(), "init.pretrained: must name a file of weights");
  const auto [dataset, foreign] = load_data(settings, context);
  const auto model = prepared_model(settings, dataset);
  return measure_model(*model, dataset, foreign, settings, context).readings;
}

}  // namespace kelvin
