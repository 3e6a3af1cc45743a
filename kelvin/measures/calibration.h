#pragma once

#include <cstdint>
#include <string>

#include "kelvin/core/reading.h"
#include "kelvin/core/settings.h"
#include "kelvin/numerics/calibration.h"
#include "kelvin/ops/tensors.h"

namespace kelvin {

// The setting `bins` of the measure calibration; an Error if there cannot be as many.
int64_t read_calibration_bins(Settings& settings);

// nll, brier, ece, ece_equal_mass, ece_classwise and mce of the test split.  `common` is what their
// definitions share: the probabilities they are of, and the samples.
Readings calibration_readings(const CalibrationQuality& quality, const Definition& common);

// PREFIX/confidence, PREFIX/accuracy and PREFIX/count of each bin of equal width.
NamedTensors reliability_curves(const Reliability& reliability, const std::string& prefix);

}  // namespace kelvin
