#pragma once

#include "kelvin/core/reading.h"
#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// Fits a temperature, and a scale and bias for each class, to what a network did with some images,
// and tells how well its probabilities are calibrated on others: as they are, and after each of
// the two.  Readings of a run, and its curves, are also added to its folder.
//
// Every definition has `scaling`: none, temperature or vector.  Where no temperature fits best, or
// a fit has not converged, its readings are missing and the context is warned in one line.
Readings calibrate(const CalibrateRequest& request, const RunContext& context);

}  // namespace kelvin
