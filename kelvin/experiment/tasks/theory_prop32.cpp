#include "kelvin/experiment/tasks/theory_prop32.h"

#include <torch/torch.h>

#include <algorithm>
#include <optional>

#include "kelvin/core/check.h"
#include "kelvin/experiment/evaluate/extract.h"
#include "kelvin/experiment/evaluate/trained_network.h"
#include "kelvin/numerics/circle_solution.h"
#include "kelvin/numerics/spectrum.h"
#include "kelvin/ops/numerical_rank.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

constexpr double kRankGamma = 1e-3;

Readings readings_of_circle(int64_t classes, double probability) {
  const double scale = circle_scale(classes, probability);
  const auto checked = check_circle(classes, scale, torch::kFloat32);
  const Definition definition = {{"of", "class weights on a circle, features alpha w_y"},
                                 {"classes", classes},
                                 {"probability", probability}};
  auto computed = definition;
  computed["precision"] = "float32";
  computed["scale"] = scale;
  auto rank = computed;
  rank["gamma"] = kRankGamma;
  rank["shift_free"] = false;
  rank["sigma_3_over_sigma_1"] = checked.beyond;
  return {{.name = "circle_scale", .value = scale, .definition = definition},
          {.name = "solution_rank", .value = static_cast<double>(checked.rank), .definition = rank},
          {.name = "accuracy", .value = checked.accuracy, .definition = computed},
          {.name = "smallest_true_probability",
           .value = checked.smallest_probability,
           .definition = computed}};
}

// Over the images of a split.
struct FittedImages {
  std::optional<GramAccumulator> logits = {};
  double right = 0;
  double below_half = 0;
  double smallest = 1;
  int64_t samples = 0;
};

FittedImages fitted_images(TrainedNetwork& network, double temperature) {
  FittedImages fitted;
  const auto& dataset = network.data.own;
  extract(*network.model, dataset, dataset, {.split = Split::train}, [&](const Record& record) {
    if (!fitted.logits) fitted.logits.emplace(record.logits.size(1));
    fitted.logits->update(record.logits);
    const auto own = softmax(record.logits.to(torch::kFloat64), {.temperature = temperature})
                         .gather(1, record.labels.unsqueeze(1));
    fitted.right += (record.logits.argmax(1) == record.labels).sum().item<double>();
    fitted.below_half += (own <= 0.5).sum().item<double>();
    fitted.smallest = std::min(fitted.smallest, own.min().item<double>());
    fitted.samples += record.logits.size(0);
  });
  return fitted;
}

Readings readings_of_run(const RankTwoRequest& request, const RunContext& context) {
  auto network = open_run(request.run, request.settings, context);
  network.settings.check_classifies("theory prop32:");
  const double temperature = network.settings.context().temperature;
  const auto fitted = fitted_images(network, temperature);
  check(fitted.samples > 0, "theory prop32: the run's dataset has no training images");
  const auto values = fitted.logits->singular_values();
  const Definition definition = {{"model", network.settings.model},
                                 {"dataset", network.data.own.name},
                                 {"samples", fitted.samples},
                                 {"images", "as they are, without augmentation"}};
  auto rank = definition;
  rank["matrix"] = "M (class x sample)";
  rank["gamma"] = kRankGamma;
  rank["shift_free"] = false;
  rank["centring"] = "none";
  rank["precision"] = "float32 forward, float64 Gram matrix";
  if (values.size(0) > 2) rank["sigma_3_over_sigma_1"] = (values[2] / values[0]).item<double>();
  auto tempered = definition;
  tempered["of"] = "softmax(M / T)";
  tempered["temperature"] = temperature;
  const auto count = static_cast<double>(fitted.samples);
  const auto reading = [](const char* name, double value, const Definition& meaning) {
    return Reading{.name = name, .value = value, .split = "train", .definition = meaning};
  };
  return {reading("accuracy", fitted.right / count, definition),
          reading("solution_rank", static_cast<double>(numerical_rank(values, kRankGamma)), rank),
          reading("smallest_true_probability", fitted.smallest, tempered),
          reading("samples_below_half", fitted.below_half, tempered)};
}

}  // namespace

Readings theory_prop32(const RankTwoRequest& request, const RunContext& context) {
  const torch::NoGradGuard no_grad;
  if (!request.run.empty()) return readings_of_run(request, context);
  Readings readings;
  for (const auto classes : request.classes) {
    check(classes >= 3 && classes <= 2000, "theory prop32: classes must be from 3 to 2000, got ",
          classes);
    for (const double probability : request.probabilities) {
      const auto found = readings_of_circle(classes, probability);
      readings.insert(readings.end(), found.begin(), found.end());
    }
  }
  return readings;
}

namespace {

const bool theory_prop32_registered = add_task(theory_prop32);

}  // namespace
}  // namespace kelvin
