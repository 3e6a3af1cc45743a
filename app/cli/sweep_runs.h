#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "kelvin/experiment/compute_api.h"
#include "kelvin/runs/kept_readings.h"
#include "kelvin/runs/recipe.h"

namespace kelvin {

// Where readings are kept unless --readings says otherwise, below the current folder.
inline constexpr const char* kReadingsFolder = "results/readings";

// A recipe as it stands on a command line, or in a line of a queue.
struct SweepRequest {
  std::string recipe;                       // a built-in name, or a path
  std::string scale = {};                   // empty: laptop, if the recipe has that
  std::vector<std::string> overrides = {};  // key=value
  std::string only = {};                    // names of runs; * stands for anything
  int64_t shard = 1;                        // of `shards`, from 1: every so manieth run
  int64_t shards = 1;
};

// A recipe of which everything is checked that can be before anything runs.
struct PlannedSweep {
  SweepRequest request;
  std::string name;  // of the recipe, without folder and extension
  std::string text;  // of the recipe
  Recipe recipe;
  std::vector<Config> resolved = {};  // of each run of the recipe
  std::vector<size_t> selected = {};  // places of the runs that --only chooses
  std::vector<size_t> chosen = {};    // those of them that are of this shard
  // Where each run of the recipe is or will be; below another sweep's root if that has it as well.
  std::vector<std::filesystem::path> folders = {};
};

// Fills in what a config leaves to defaults, and checks it.
std::function<Config(const Config&)> resolver_of(const ComputeLibrary& library);

// An Error if the recipe has a mistake: an unknown key, runs of one name or of one config, a claim
// that no run can show, ...
PlannedSweep plan_sweep(const SweepRequest& request, const ComputeLibrary& library,
                        const std::filesystem::path& data_folder);

// Sets the folders of all runs, below root_of(sweep).  Runs of one config, which recipes share,
// have one folder, so that they are trained once: that of the first sweep which selects them.
void place_runs(std::vector<PlannedSweep>& sweeps,
                const std::function<std::filesystem::path(const PlannedSweep&)>& root_of);

// "kelvin sweep table1 --scale laptop"; with the names of some runs, as --only takes them, if
// given.
std::string sweep_command(const PlannedSweep& sweep, const std::string& only = "");

// "table1-laptop": the folder of the runs, below that of all sweeps.
std::string sweep_folder(const PlannedSweep& sweep);

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
  std::filesystem::path root;  // folder of the runs
  std::filesystem::path data_folder = {};
  int64_t jobs = 1;     // runs at once
  int64_t threads = 1;  // of each run
  bool is_quiet = false;
};

struct SweepResult {
  int64_t done_before = 0;                 // finished or kept
  int64_t finished = 0;                    // by this sweep
  int64_t shared = 0;                      // runs of an earlier sweep, which trains them
  int64_t elsewhere = 0;                   // left to the processes that work on them
  std::vector<std::string> failures = {};  // "NAME: why", one line each
  bool has_internal_error = false;
  bool was_interrupted = false;
};

// Trains what is missing of the chosen runs whose folders are below its root, each in a process of
// its own.  Interrupted runs go on
// exactly, failed ones are tried a second time, and one that fails twice keeps no other from
// finishing.
SweepResult run_sweep(const PlannedSweep& sweep, const KeptReadings& kept,
                      const SweepOptions& options);

// As many runs of `threads` threads as cores and free memory allow.
int64_t default_jobs(int64_t threads);

struct Harvest {
  int64_t finished = 0;  // runs that were found
  int64_t written = 0;   // whose readings were not kept before
};

// Keeps the readings of all finished runs in or below `root`.
Harvest harvest(const std::filesystem::path& root, const std::filesystem::path& readings);

}  // namespace kelvin
