#pragma once

#include <filesystem>

#include "kelvin/experiment/compute_api.h"
#include "kelvin/runs/config.h"

namespace kelvin {

// A run of a resolved config in the new folder `output`, see run().
struct TrainRequest {
  static constexpr auto kTask = "train";
  using Result = void;

  Config resolved = {};
  std::filesystem::path output = {};
  nlohmann::ordered_json metadata = {};
};

// See resume().
struct ResumeRequest {
  static constexpr auto kTask = "resume";
  using Result = void;

  std::filesystem::path run = {};
  nlohmann::ordered_json metadata = {};
  bool is_inexact = false;
};

// What is to be measured, and how: a run, a dump or, if neither is given, the weights in
// `init.pretrained`.
struct MeasureRequest {
  static constexpr auto kTask = "measure";
  using Result = Readings;

  // Settings of "measure" and "measure.NAME" that replace those of a run; "measure.names" are all
  // that is measured.  Of a file of weights the whole config, with "init.pretrained".
  Config settings = {};
  std::filesystem::path run = {};
  std::filesystem::path dump = {};  // an npz, see dump.h
  // An npz for what is too large for readings.  Of a run it also goes to its curves.npz.
  std::filesystem::path curves = {};
  // A folder for the scores of detectors as CSV.  Of a run they also go to its folder.
  std::filesystem::path scores = {};
  // Of a run: whether its folder gets the readings.  Otherwise it is not even locked.
  bool stores = true;
  ReadingsListener on_readings = [](const Readings&) {};
};

// One run, from data to readings, in the new folder `output`.
void run(const Config& config, const std::filesystem::path& output,
         const nlohmann::ordered_json& metadata, const RunContext& context);

// Goes on with a run that was stopped or killed, from its last checkpoint, to the same bits as if
// it had not been.  `metadata` tells of this process; unless `is_inexact`, arithmetic must be what
// it was.
void resume(const std::filesystem::path& path, const nlohmann::ordered_json& metadata,
            bool is_inexact, const RunContext& context);

// Measures the last weights of a run again; adds readings and curves to its folder.
Readings measure_run(const std::filesystem::path& path, const MeasureRequest& request,
                     const RunContext& context);

// Measures the weights in the file `init.pretrained` of the request's settings.
Readings measure_weights(const MeasureRequest& request, const RunContext& context);

// Whichever of them the request names.
Readings measure(const MeasureRequest& request, const RunContext& context);

}  // namespace kelvin
