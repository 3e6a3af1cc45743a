#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kelvin/experiment/compute_api.h"

namespace kelvin {

struct Dataset;
struct RunSettings;
enum class Precision;

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

// Training for the sake of its speed, see bench_steps().
struct StepBenchRequest {
  static constexpr auto kTask = "bench_steps";
  using Result = void;

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

// At "fp32" or "bf16", see peak_gemm().
struct PeakGemmRequest {
  static constexpr auto kTask = "peak_gemm";
  using Result = PeakGemm;

  std::string precision = "fp32";
};

// Batches in one epoch of a bench, and how many of them go into its start file.
inline constexpr int64_t kBenchBatches = 32;
inline constexpr int64_t kSharedBatches = 8;

// Random bytes in the shape, and random labels among the classes, of the dataset that the settings
// name: its own images are not needed for speed, nor read.
Dataset bench_dataset(const RunSettings& settings);

// Trains on such images by the loop that all runs use, with batches made beside it, until the
// request wants no more steps.  The clock stands still between them.  The start file has the
// network's tensors as "weights/NAME", and "images" (bytes, to be divided by 127.5, minus 1) and
// "labels" of the first batches in order.
void bench_steps(const StepBenchRequest& request, const RunContext& context);

// How fast this machine multiplies at best, as LibTorch does it: the fastest of some products of
// square matrices, on the threads in use.  What training reaches is a share of it.  Where bf16 is
// emulated by float32 products, the peak is that of float32.  By the context's clock.
PeakGemm peak_gemm(Precision precision, const RunContext& context);

}  // namespace kelvin
