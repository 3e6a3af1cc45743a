#include <torch/types.h>

#include "kelvin/measures/detectors/activation_shaping.h"

namespace kelvin {
namespace {

std::unique_ptr<Detector> make_scale(const MeasureContext& context, Settings& settings) {
  return shaping_detector(
      {.name = "scale",
       .shaping = "all activations of a sample times exp(sum of all / sum of those not among the "
                  "lowest); times 0 if these sum to no more than 0",
       .percentile = 0.85,  // as published
       .shaped = [](const torch::Tensor& features,
                    const TopActivations& top) { return features * sharpening(features, top); }},
      context, settings);
}

const bool scale_registered = detectors().add(
    "scale",
    {.summary = "energy after all activations were enlarged, the more the less the top ones hold",
     .reference = "Scaling for training time and post-hoc OOD detection enhancement, "
                  "arXiv 2310.00227",
     .make = make_scale});

}  // namespace
}  // namespace kelvin
