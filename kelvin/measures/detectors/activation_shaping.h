#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <string>

#include "kelvin/measures/detectors/detector.h"

namespace kelvin {

// Which activations of each sample are left when the lowest are removed.
struct TopActivations {
  torch::Tensor is_kept;  // [samples, dims]
  int64_t count = 0;      // of each sample, at least 1
};

// Removes round(percentile * dims) of each row of features [samples, dims], halves to the even
// number; of equal ones the last go first.
TopActivations top_activations(const torch::Tensor& features, double percentile);

// [samples, dims], the kept ones as they are and 0 for the others.
torch::Tensor pruned(const torch::Tensor& features, const TopActivations& top);

// [samples, 1], exp(sum of all activations / sum of the kept ones).  Published for activations that
// are not negative; here it is 0 where the kept ones do not sum to more than 0, which is what it
// tends to.
torch::Tensor sharpening(const torch::Tensor& features, const TopActivations& top);

// A way to change features by which of their activations are large.
struct ActivationShaping {
  std::string name;       // of the detector
  std::string shaping;    // in words, for its definition
  double percentile = 0;  // unless the settings say otherwise; a fraction in [0, 1)
  std::function<torch::Tensor(const torch::Tensor& features, const TopActivations& top)> shaped =
      {};
};

// Scores by the energy, at the training temperature, of the logits of shaped features.
std::unique_ptr<Detector> shaping_detector(const ActivationShaping& shaping,
                                           const MeasureContext& context, Settings& settings);

}  // namespace kelvin
