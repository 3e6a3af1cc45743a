#include <torch/types.h>

#include "kelvin/measures/detectors/activation_shaping.h"

namespace kelvin {
namespace {

// The default of the published functions; published runs also use 0.9.
constexpr double kPercentile = 0.65;
constexpr const char* kAshReference =
    "Extremely simple activation shaping for OOD detection, arXiv 2209.09858";

std::unique_ptr<Detector> make_p(const MeasureContext& context, Settings& settings) {
  return shaping_detector({.name = "ash_p",
                           .shaping = "lowest activations of a sample set to 0",
                           .percentile = kPercentile,
                           .shaped = pruned},
                          context, settings);
}

std::unique_ptr<Detector> make_b(const MeasureContext& context, Settings& settings) {
  return shaping_detector(
      {.name = "ash_b",
       .shaping = "lowest activations of a sample set to 0, the kept to sum of all / kept",
       .percentile = kPercentile,
       .shaped =
           [](const torch::Tensor& features, const TopActivations& top) {
             const auto filling = features.sum(1, /*keepdim=*/true) / top.count;
             return torch::where(top.is_kept, filling, torch::zeros_like(filling));
           }},
      context, settings);
}

std::unique_ptr<Detector> make_s(const MeasureContext& context, Settings& settings) {
  return shaping_detector(
      {.name = "ash_s",
       .shaping = "lowest activations of a sample set to 0, the kept times "
                  "exp(sum of all / sum of kept); times 0 if the kept sum to no more than 0",
       .percentile = kPercentile,
       .shaped =
           [](const torch::Tensor& features, const TopActivations& top) {
             return pruned(features, top) * sharpening(features, top);
           }},
      context, settings);
}

const bool registered_p =
    detectors().add("ash_p", {.summary = "energy after low activations were removed",
                              .reference = kAshReference,
                              .make = make_p});
const bool registered_b = detectors().add(
    "ash_b", {.summary = "energy after low activations were removed and the others made equal",
              .reference = kAshReference,
              .make = make_b});
const bool registered_s = detectors().add(
    "ash_s", {.summary = "energy after low activations were removed and the others enlarged",
              .reference = kAshReference,
              .make = make_s});

}  // namespace
}  // namespace kelvin
