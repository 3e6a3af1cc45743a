#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/bench/bench_side.h"
#include "app/bench/rows.h"

namespace kelvin {

struct RaceOptions {
  int64_t rounds = 5;
  int64_t steps = 0;  // of each side in each round; 0: so many that a round takes about 2 s
  BenchThreads threads = {};
  std::string python = {};  // that has PyTorch; empty: kelvin runs alone
  std::function<void(int64_t done, int64_t total)> on_round = [](int64_t, int64_t) {};
};

// What one side did.
struct SideResult {
  std::vector<double> images_per_second = {};  // of each round
  std::vector<double> losses = {};             // of the first steps
  int64_t memory = 0;                          // the most that its process had, in bytes
};

// Milliseconds of one of kelvin's steps, the mean over all rounds.
struct StepParts {
  double all = 0;
  double data = 0;
  double forward = 0;
  double backward = 0;
  double optimizer = 0;
};

struct RaceResult {
  std::string name;
  nlohmann::ordered_json settings = {};  // resolved
  nlohmann::ordered_json versions = {};  // of what kelvin computes with
  int64_t parameters = 0;
  int64_t macs = 0;  // multiply-adds for one image, forward
  SideResult kelvin = {};
  StepParts parts = {};
  double peak_gflops = 0;
  std::string peak_precision = {};
  std::optional<SideResult> pytorch = {};
  nlohmann::ordered_json about_pytorch = {};  // its version and which variant of the step it took
  std::string pytorch_missing = {};           // why there is none although it was wanted

  std::string precision() const { return settings.at("train.precision"); }
  int64_t batch_size() const { return settings.at("train.batch_size"); }
  std::vector<double> ratios() const;  // kelvin's speed over PyTorch's in each round
  // 10^9 operations a second that the steps of a side need.
  double gflops(const SideResult& side) const;
  // The ratio to reach where there is a PyTorch: 1.5, or what 85 % of the peak are of its speed if
  // that is less, but not less than 1.
  double aim() const;
};

// Throws an Error for no values.
double median_of(std::vector<double> values);

// Trains the network of `row` in one process by kelvin and in another one by PyTorch: first the
// same few steps, whose losses must agree, or an Error says by how much they do not; then in turns,
// never both at once.
RaceResult race(const BenchRow& row, const RaceOptions& options);

}  // namespace kelvin
