#include "kelvin/experiment/tasks/calibrate.h"

#include <torch/torch.h>

#include <optional>

#include "kelvin/core/check.h"
#include "kelvin/experiment/evaluate/calibration_data.h"
#include "kelvin/experiment/run/run_store.h"
#include "kelvin/measures/calibration.h"
#include "kelvin/numerics/calibration.h"
#include "kelvin/numerics/temperature_scaling.h"
#include "kelvin/numerics/vector_scaling.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

std::string why_none(const FittedTemperature& fitted) {
  switch (fitted.status) {
    case TemperatureStatus::unbounded:
      return "every sample it would be fitted on is classified right, so that the NLL falls as T "
             "goes to 0";
    case TemperatureStatus::at_chance:
      return "the logits tell no more of the labels than chance, so that the NLL falls as T goes "
             "to "
             "infinity";
    case TemperatureStatus::flat:
      return "the logits of each sample are all equal, so that T changes nothing";
    case TemperatureStatus::found:
      break;
  }
  return "the search has not converged";
}

// Readings and curves by kind of scaling.
class Calibrated {
 public:
  Calibrated(const CalibrationData& data, const FittedTemperature& fitted)
      : data_(data), common_(data.samples) {
    common_["temperature_status"] = name_of(fitted.status);
  }

  // Of softmax(logits / temperature).
  void add(const std::string& scaling, const torch::Tensor& logits, double temperature,
           const Definition& own) {
    const auto quality = calibration_quality(logits, data_.test.labels,
                                             {.temperature = temperature, .bins = data_.bins});
    auto definition = common_;
    definition["scaling"] = scaling;
    definition.update(own);
    for (auto& reading : calibration_readings(quality, definition)) {
      readings_.push_back(std::move(reading));
    }
    readings_.push_back(
        {.name = "accuracy", .value = quality.accuracy, .split = "test", .definition = definition});
    for (auto& [name, tensor] : reliability_curves(quality.reliability, curve(scaling))) {
      curves_[name] = tensor;
    }
  }

  void add_temperature(const FittedTemperature& fitted, double nll_before) {
    Definition definition = {{"statistic", "T that minimises the NLL of softmax(M / T)"},
                             {"scaling", "temperature"},
                             {"fitted_on", common_.at("fitted_on")},
                             {"samples", data_.fit.size()},
                             {"temperature_status", name_of(fitted.status)},
                             {"beta_bracket", {fitted.low, fitted.high}},
                             {"slope_at_bracket", {fitted.low_slope, fitted.high_slope}},
                             {"evaluations", fitted.iterations},
                             {"converged", fitted.converged},
                             {"nll_before", nll_before},
                             {"temperature_before", data_.temperature},
                             {"nll_after", fitted.nll}};
    if (common_.contains("halves_seed")) definition["halves_seed"] = common_.at("halves_seed");
    readings_.push_back({.name = "temperature",
                         .value = *fitted.temperature,
                         .split = data_.fit_split,
                         .definition = std::move(definition)});
  }

  void add_vector(const VectorScaling& fitted, const VectorScalingOptions& options) {
    add("vector", fitted.scaled(data_.test.logits), 1,
        {{"matrix", "softmax(s * M + b), s and b for each class"},
         {"l2", options.l2},
         {"largest_gradient", fitted.gradient},
         {"iterations", fitted.iterations},
         {"converged", fitted.converged}});
    curves_[curve("vector") + "/scale"] = fitted.scale;
    curves_[curve("vector") + "/bias"] = fitted.bias;
  }

  const Readings& readings() const { return readings_; }
  const NamedTensors& curves() const { return curves_; }

 private:
  static std::string curve(const std::string& scaling) { return "calibrate/" + scaling; }

  const CalibrationData& data_;
  Definition common_;
  Readings readings_;
  NamedTensors curves_;
};

Definition tempered(double temperature) {
  return {{"matrix", "softmax(M / T)"}, {"temperature", temperature}};
}

Calibrated calibrated(const CalibrationData& data, const RunContext& context) {
  const auto& [logits, labels] = data.fit;
  const auto fitted = fit_temperature(logits, labels);
  Calibrated result(data, fitted);
  result.add("none", data.test.logits, data.temperature, tempered(data.temperature));
  if (fitted.temperature) {
    const auto before =
        calibration_quality(logits, labels, {.temperature = data.temperature, .bins = data.bins});
    result.add_temperature(fitted, before.nll);
    result.add("temperature", data.test.logits, *fitted.temperature, tempered(*fitted.temperature));
  } else {
    context.warn("no temperature was fitted: " + why_none(fitted));
  }
  if (fitted.status == TemperatureStatus::unbounded) return result;  // so would these be
  const VectorScalingOptions options;
  const auto vector = fit_vector_scaling(logits, labels, options);
  if (!vector.converged) {
    context.warn(c10::str("no scale and bias were fitted: after ", vector.iterations,
                          " steps the gradient is ", vector.gradient));
  } else if (vector.scaled(logits).argmax(1).equal(labels)) {
    // What is always right can be scaled without end; nothing but the penalty ends it.
    context.warn(
        "no scale and bias were fitted: with them every sample they would be fitted on is "
        "classified right, so that the NLL falls as they grow");
  } else {
    result.add_vector(vector, options);
  }
  return result;
}

}  // namespace

Readings calibrate(const CalibrateRequest& request, const RunContext& context) {
  const torch::NoGradGuard no_grad;
  check(request.run.empty() || request.validation.empty(),
        "calibrate: needs a run or a dump, got both");
  const bool stores = !request.run.empty() && request.stores;
  std::optional<RunLock> lock;
  if (!request.run.empty()) RunFolder::open(request.run);
  if (stores) lock.emplace(lock_to_store(request.run));
  const auto data = calibration_data(request, context);
  const auto result = calibrated(data, context);
  request.on_readings(result.readings());
  if (!request.curves.empty()) write_curves(request.curves, result.curves());
  if (stores) store_in_run(request.run, result.readings(), result.curves());
  return result.readings();
}

namespace {

const bool calibrate_registered = add_task(calibrate);

}  // namespace
}  // namespace kelvin
