#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/formats/images.h"
#include "kelvin/runs/config.h"

// What a program that must start fast (the tool) can ask of libkelvin after it
// has loaded it by hand.  No LibTorch type appears here, so that including this
// header does not link it.

namespace kelvin {

// How far a piece of work is; sent at most a few times a second.
struct Progress {
  std::string phase;  // "train", "measure", "probe"
  int64_t done = 0;
  int64_t total = 0;
  double images_per_second = 0;
  std::string note = {};  // "loss 3.21, accuracy 18 %"
};

// The outside world as a run sees it: the library itself reads no clock and prints nothing.
struct RunContext {
  std::function<void(const Progress&)> report_progress = [](const Progress&) {};
  std::function<double()> seconds = [] { return 0.0; };  // monotonic
  std::function<bool()> should_stop = [] { return false; };
  std::function<double()> time_of_day = [] { return 0.0; };          // UNIX seconds
  std::function<int64_t()> peak_memory = [] { return int64_t{0}; };  // bytes of this process
  std::function<void(const std::string&)> warn = [](const std::string&) {};
  std::function<void(const std::string&)> inform = [](const std::string&) {};
  std::filesystem::path data_folder = {};  // where datasets lie
  std::string process_name = "kelvin";     // unlike that of any other process
};

// Told of what was computed before it is stored or written anywhere: a full disk must not cost it.
using ReadingsListener = std::function<void(const Readings&)>;

// What is to be measured, and how.
struct MeasureRequest {
  // Settings of "measure" and "measure.NAME" that replace those of a run; "measure.names" are all
  // that is measured.  Of a file of weights the whole config, with "init.pretrained".
  Config settings = {};
  // An npz for what is too large for readings.  Of a run it also goes to its curves.npz.
  std::filesystem::path curves = {};
  // A folder for the scores of detectors as CSV.  Of a run they also go to its folder.
  std::filesystem::path scores = {};
  // Of a run: whether its folder gets the readings.  Otherwise it is not even locked.
  bool stores = true;
  ReadingsListener on_readings = [](const Readings&) {};
};

// An npz with what a network did with the images of a dataset, see dump.h.
struct NamedDump {
  std::string name;
  std::filesystem::path npz;
};

// Detection without a network: dumps of what it did with known and with OOD images.
struct DetectRequest {
  Config settings = {};  // of "measure" and "detector.NAME"; "measure.detectors" names some
  std::filesystem::path id_train = {};
  std::filesystem::path id_test = {};
  std::vector<NamedDump> ood = {};
  std::filesystem::path scores = {};  // as of MeasureRequest
  ReadingsListener on_readings = [](const Readings&) {};
};

// What is calibrated, see calibrate.h: a run; or a dump to fit on and one to test on; or, if
// neither is given, the weights of `init.pretrained`.
struct CalibrateRequest {
  Config settings = {};  // as of MeasureRequest
  std::filesystem::path run = {};
  std::filesystem::path validation = {};
  std::filesystem::path test = {};    // empty: one half of `validation` tests what the other fitted
  std::filesystem::path curves = {};  // an npz for reliability diagrams and fitted parameters
  bool stores = true;                 // as of MeasureRequest
  ReadingsListener on_readings = [](const Readings&) {};
};

// Where to end a network, and what becomes of it.
struct TruncateRequest {
  Config settings = {};               // as of MeasureRequest; those of the probes
  std::string layer = {};             // the last to keep; empty: the first that is good enough
  std::filesystem::path output = {};  // a new safetensors file; empty: nothing is written
};

// Some steps of training, one after the other.
struct TimedSteps {
  std::vector<double> losses = {};  // of each
  double seconds = 0;               // of all of them together; the parts below are within it
  double data = 0;                  // waited for batches
  double forward = 0;
  double backward = 0;
  double optimizer = 0;
};

// What a bench needs to know before the first step.
struct BenchStart {
  nlohmann::ordered_json settings = {};  // resolved, by their full names
  int64_t parameters = 0;
  int64_t macs = 0;  // multiply-adds for one image, forward
};

// Training for the sake of its speed, see step_bench.h.
struct StepBenchRequest {
  Config settings = {};
  // A new safetensors file with all that another program needs to take the same steps; empty: none.
  std::filesystem::path start = {};
  std::function<void(const BenchStart&)> on_start = [](const BenchStart&) {};
  // How many steps to take now; 0 ends it.
  std::function<int64_t()> next_count = [] { return int64_t{0}; };
  std::function<void(const TimedSteps&)> on_steps = [](const TimedSteps&) {};
};

// The fastest of a few large matrix products.
struct PeakGemm {
  double gflops = 0;  // 10^9 operations a second; a multiply-add is two
  std::string precision = "fp32";
};

struct ImageSamples {
  RawImages images = {};
  std::vector<std::string> class_names = {};
};

struct ComputeApi {
  // Checks every setting and returns the config with nothing unset any more.
  Config (*resolve)(const Config& config);

  // What a run of a resolved config would cost and start from, see plan.h.
  nlohmann::ordered_json (*plan)(const Config& resolved, const RunContext& context);

  // One run from data to readings in the new folder `output`.  Stops early, and
  // says so in the folder's status, when the context asks for it.
  void (*train)(const Config& resolved, const std::filesystem::path& output,
                const nlohmann::ordered_json& metadata, const RunContext& context);

  // See run.h.
  void (*resume)(const std::filesystem::path& run, const nlohmann::ordered_json& metadata,
                 bool is_inexact, const RunContext& context);

  // Measures the weights of a finished run again and adds the readings to its
  // folder; all of the run's own measures unless the request names others.
  Readings (*measure_run)(const std::filesystem::path& run, const MeasureRequest& request,
                          const RunContext& context);

  // Measures the weights in the file `init.pretrained` on the test split, without a run.
  Readings (*measure_weights)(const MeasureRequest& request, const RunContext& context);

  // See measure_dump.h.
  Readings (*measure_dump)(const std::filesystem::path& npz, const MeasureRequest& request,
                           const RunContext& context);

  // See detect_in_dumps.h.
  Readings (*detect_in_dumps)(const DetectRequest& request, const RunContext& context);

  // See calibrate.h.
  Readings (*calibrate)(const CalibrateRequest& request, const RunContext& context);

  // See truncate.h.
  nlohmann::ordered_json (*truncate_run)(const std::filesystem::path& run,
                                         const TruncateRequest& request, const RunContext& context);

  // See sample_images.h.
  ImageSamples (*sample_images)(const Config& config, int64_t count, bool of_training,
                                const RunContext& context);

  // The layers of the model that the config's section "model" describes: name, shapes, parameters
  // and multiply-adds of each, for images of `shape` (channels, height, width).
  nlohmann::ordered_json (*describe_model)(const Config& config, const std::vector<int64_t>& shape,
                                           int64_t classes);

  // See plan.h.
  nlohmann::ordered_json (*initial_norms)(const Config& config, const std::vector<int64_t>& seeds,
                                          int64_t samples, const RunContext& context);

  // See step_bench.h.
  void (*bench_steps)(const StepBenchRequest& request, const RunContext& context);

  // See peak_gemm.h.
  PeakGemm (*peak_gemm)(const std::string& precision, const RunContext& context);

  // Versions of LibTorch and BLAS, CPU capability in use, threads.
  nlohmann::ordered_json (*versions)();

  void (*set_threads)(int64_t threads);
};

}  // namespace kelvin

// The one symbol the tool looks up.
extern "C" const kelvin::ComputeApi* kelvin_compute_api();
