#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// An npz with what a network did with the images of a dataset, see dump.h.
struct NamedDump {
  std::string name;
  std::filesystem::path npz;
};

// Detection without a network: dumps of what it did with known and with OOD images.
struct DetectRequest {
  static constexpr auto kTask = "detect";
  using Result = Readings;

  Config settings = {};  // of "measure" and "detector.NAME"; "measure.detectors" names some
  std::filesystem::path id_train = {};
  std::filesystem::path id_test = {};
  std::vector<NamedDump> ood = {};
  std::filesystem::path scores = {};  // as of MeasureRequest
  ReadingsListener on_readings = [](const Readings&) {};
};

// Fits detectors on a dump of training samples and scores dumps of known and of OOD ones, see
// dump.h; all of the same network.  The classifier's weight and the temperature are those of
// `id_train`, unless `measure.temperature` is set.  All detectors that the dumps have enough for
// unless the settings name some.
Readings detect_in_dumps(const DetectRequest& request, const RunContext& context);

}  // namespace kelvin
