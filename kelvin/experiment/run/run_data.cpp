#include "kelvin/experiment/run/run_data.h"

#include <algorithm>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/data/fit.h"
#include "kelvin/data/image_files.h"
#include "kelvin/measures/measure.h"
#include "kelvin/model/description.h"

namespace kelvin {
namespace {

Dataset load_own(const RunSettings& settings, const RunContext& context) {
  auto request = settings.request;
  request.data_folder = context.data_folder;
  return load_dataset(settings.dataset, request);
}

// OOD images come as the network takes them, whatever their size and colours were.
std::vector<Dataset> load_ood(const RunSettings& settings, const ImageShape& shape,
                              const RunContext& context) {
  std::vector<Dataset> ood;
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
    ood.push_back(std::move(dataset));
  }
  return ood;
}

// Said before hours of training rather than after.
void check_training_splits(const RunSettings& settings, const std::vector<Dataset>& ood) {
  for (const auto& name : settings.measure.names) {
    if (!needs_ood_training(*settings.make_measure(name))) continue;
    for (const auto& dataset : ood) {
      check(dataset.train.size() > 0, "dataset '", dataset.name,
            "' has no training images, which measure '", name, "' needs of OOD data");
    }
  }
}

// Likewise, of what is fitted to the training images of a dataset.
void check_can_be_fitted(const std::string& measure, const RunSettings& settings,
                         const Dataset& dataset) {
  const auto shown = std::min(settings.measure.train_samples, dataset.train.size());
  check(dataset.classes >= 2, "dataset '", dataset.name, "': must have at least 2 classes for '",
        measure, "' to tell apart, has ", dataset.classes);
  check(shown >= dataset.classes, "dataset '", dataset.name,
        "': must show at least as many training samples as it has classes, ", dataset.classes,
        ", for '", measure, "' to be fitted to, shows ", shown);
}

// Likewise.
void check_attention(const std::string& key, const std::vector<std::string>& names,
                     const RunSettings& settings, Model& model, const ModelShape& shape) {
  for (const auto& name : names) {
    if (!settings.make_measure(name)->needs().attention) continue;
    const auto taps = taps_of_one_image(model, shape, {.layers = false, .attention = true});
    check(!taps.attention().empty(), key, ": '", name, "' needs a model with attention, '",
          settings.model, "' has none");
  }
}

}  // namespace

RunData load_run_data(const RunSettings& settings, const RunContext& context) {
  auto own = load_own(settings, context);
  auto ood = load_ood(settings, own.test.shape(), context);
  check_training_splits(settings, ood);
  return {.own = std::move(own), .ood = std::move(ood)};
}

void check_measures(const RunSettings& settings, Model& model, const RunData& data) {
  const auto shape = shape_for(settings, data.own);
  check_attention("measure.names", settings.measure.names, settings, model, shape);
  check_attention("measure.during", settings.measure.during, settings, model, shape);
  for (const auto& name : settings.measure.names) {
    if (!needs_ood_training(*settings.make_measure(name))) continue;
    check_can_be_fitted(name, settings, data.own);
    for (const auto& dataset : data.ood) check_can_be_fitted(name, settings, dataset);
  }
  for (const auto& name : settings.measure.during) {
    check(!needs_ood_training(*settings.make_measure(name)), "measure.during: '", name,
          "' is fitted to the training images of all datasets, which takes too long to be done "
          "during training");
  }
}

}  // namespace kelvin
