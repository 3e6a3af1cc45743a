#pragma once

#include <filesystem>

#include "kelvin/core/reading.h"
#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// What is calibrated: a run; or a dump to fit on and one to test on; or, if
// neither is given, the weights of `init.pretrained`.
struct CalibrateRequest {
  static constexpr auto kTask = "calibrate";
  using Result = Readings;

  Config settings = {};  // as of MeasureRequest
  std::filesystem::path run = {};
  std::filesystem::path validation = {};
  std::filesystem::path test = {};    // empty: one half of `validation` tests what the other fitted
  std::filesystem::path curves = {};  // an npz for reliability diagrams and fitted parameters
  bool stores = true;                 // as of MeasureRequest
  ReadingsListener on_readings = [](const Readings&) {};
};

// Fits a temperature, and a scale and bias for each class, to what a network did with some images,
// and tells how well its probabilities are calibrated on others: as they are, and after each of
// the two.  Readings of a run, and its curves, are also added to its folder.
//
// Every definition has `scaling`: none, temperature or vector.  Where no temperature fits best, or
// a fit has not converged, its readings are missing and the context is warned in one line.
Readings calibrate(const CalibrateRequest& request, const RunContext& context);

}  // namespace kelvin
