#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>

namespace kelvin {

// Whether there is a temperature that fits best.
enum class TemperatureStatus {
  found,
  unbounded,  // every target has the highest logit: the lower T, the better
  at_chance,  // the logits tell no more of the targets than equal ones: the higher T, the better
  flat,       // all logits of each sample are equal: T changes nothing
};

const char* name_of(TemperatureStatus status);

struct TemperatureScalingOptions {
  double tolerance = 1e-10;  // of the bracket, relative
  int64_t max_iterations = 200;
};

// The temperature T that minimises the mean NLL of softmax(logits / T), and what proves it: the NLL
// is convex in beta = 1 / T, so it has its minimum where its slope, the derivative in beta, changes
// its sign.
struct FittedTemperature {
  TemperatureStatus status = TemperatureStatus::flat;
  // Above 0 and finite; only if one was found and the bracket is as narrow as was asked for.
  std::optional<double> temperature = {};
  double nll = 0;  // at that temperature; 0 without one
  // The minimum lies at a beta between low and high: the slope is below 0 at low and not below 0 at
  // high.  If there is no minimum, the ends of what was searched, with slopes that, but for
  // rounding, do not change their sign in between.
  double low = 0;
  double high = 0;
  double low_slope = 0;
  double high_slope = 0;
  int64_t iterations = 0;  // evaluations of the slope on all samples
  bool converged = false;
};

// logits [samples, classes] floating and finite, labels [samples] in [0, classes).
FittedTemperature fit_temperature(const torch::Tensor& logits, const torch::Tensor& labels,
                                  const TemperatureScalingOptions& options = {});

// The same for probabilities [samples, classes] of the classes, none below 0 and with sums of 1, in
// place of labels: their cross-entropy with softmax(logits / T) is minimised.
FittedTemperature fit_temperature_to_probabilities(const torch::Tensor& logits,
                                                   const torch::Tensor& probabilities,
                                                   const TemperatureScalingOptions& options = {});

}  // namespace kelvin
