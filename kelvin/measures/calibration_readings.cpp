#include "kelvin/measures/calibration_readings.h"

#include <torch/types.h>

namespace kelvin {

Readings calibration_readings(const CalibrationQuality& quality, const Definition& common) {
  Readings readings;
  const auto add = [&](const char* name, double value, const Definition& own) {
    auto definition = common;
    definition.update(own);
    readings.push_back(
        {.name = name, .value = value, .split = "test", .definition = std::move(definition)});
  };
  const auto bins = quality.reliability.count.size(0);
  const auto* const width = "equal width, closed above";
  const auto* const error = "sum over bins of |accuracy - mean confidence| * count / samples";
  const auto* const confidence = "the largest probability of a sample";
  add("nll", quality.nll, {{"statistic", "mean over samples of -log p(label)"}});
  add("brier", quality.brier,
      {{"statistic", "sum over classes of (p - y)^2, mean over samples"}, {"upper_bound", 2}});
  add("ece", quality.ece,
      {{"statistic", error},
       {"confidence", confidence},
       {"bins", bins},
       {"binning", width},
       {"upper_bound", 1}});
  add("ece_equal_mass", quality.ece_equal_mass,
      {{"statistic", error},
       {"confidence", confidence},
       {"bins", bins},
       {"binning", "equal mass, samples of one confidence together"},
       {"upper_bound", 1}});
  add("ece_classwise", quality.ece_classwise,
      {{"statistic", "mean over classes c of the ECE of p(c) against (label == c)"},
       {"classes", quality.classes},
       {"bins", bins},
       {"binning", width},
       {"upper_bound", 2.0 / static_cast<double>(quality.classes)}});
  add("mce", quality.mce,
      {{"statistic", "largest |accuracy - mean confidence| of a bin"},
       {"confidence", confidence},
       {"bins", bins},
       {"binning", width},
       {"upper_bound", 1}});
  return readings;
}

NamedTensors reliability_curves(const Reliability& reliability, const std::string& prefix) {
  return {{prefix + "/confidence", reliability.confidence},
          {prefix + "/accuracy", reliability.accuracy},
          {prefix + "/count", reliability.count}};
}

}  // namespace kelvin
