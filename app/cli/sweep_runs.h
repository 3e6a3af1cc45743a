#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "app/cli/sweep_plan.h"
#include "kelvin/runs/kept_readings.h"

namespace kelvin {

enum class SweepState {
  is_kept,       // its readings are, wherever it was trained
  is_finished,   // its folder holds the result
  is_elsewhere,  // another process is at work in its folder
  to_resume,     // was interrupted, or failed
  to_train,
};

std::string name_of(SweepState state);

// What has to be done for a run with this folder and config.
SweepState sweep_state(const std::filesystem::path& run, const Config& resolved,
                       const KeptReadings& kept);

struct SweepOptions {
  std::filesystem::path data_folder = {};
  int64_t jobs = 1;     // runs at once
  int64_t threads = 1;  // of each run
  bool is_quiet = false;
};

struct SweepResult {
  int64_t done_before = 0;  // finished or kept
  int64_t finished = 0;     // by this sweep
  int64_t shared = 0;       // runs of an earlier sweep or of a strict case, which trains them
  int64_t elsewhere = 0;    // left to the processes that work on them
  std::vector<std::string> failures = {};  // "NAME: why", one line each
  bool has_internal_error = false;
  bool was_interrupted = false;
};

// Trains what is missing of the chosen runs whose folders are below its root, each in a process of
// its own.  Interrupted runs go on exactly, failed ones are tried a second time, and one that fails
// twice keeps no other from finishing.  A trial of a tuning that fails is tried once and done: its
// value has lost.
SweepResult run_sweep(const PlannedSweep& sweep, const KeptReadings& kept,
                      const SweepOptions& options);

// As many runs of `threads` threads as cores and free memory allow.
int64_t default_jobs(int64_t threads);

struct Harvest {
  int64_t finished = 0;  // runs that were found
  int64_t written = 0;   // whose readings were not kept before
};

// Keeps the readings of all finished runs in or below `root`, and which trials of tunings failed.
Harvest harvest(const std::filesystem::path& root, const std::filesystem::path& readings);

}  // namespace kelvin
