#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "app/cli/tuning.h"
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
  bool is_tuning = false;                   // the trials of tuned cases instead of the runs
  int64_t shard = 1;                        // of `shards`, from 1: every so manieth run
  int64_t shards = 1;
};

// Where a sweep finds what there is, and leaves what it makes.
struct SweepPlaces {
  const ComputeLibrary& library;
  const KeptReadings& kept;
  std::filesystem::path data_folder = {};
  std::filesystem::path output = {};  // empty: runs
  bool is_output_of_one = false;      // else it holds a folder for each sweep
};

// A recipe of which everything is checked that can be before anything runs.
struct PlannedSweep {
  SweepRequest request;
  std::string name;                   // of the recipe, without folder and extension
  std::string text;                   // of the recipe
  std::filesystem::path root;         // folder of the runs
  Recipe recipe;                      // its runs are those of which all is known, or the trials
  std::vector<Config> resolved = {};  // of each run of the recipe
  std::vector<PlannedTuning> tunings = {};  // what was found of the trials
  std::vector<std::string> undecided = {};  // of them, whose runs --only chooses and nobody knows
  std::vector<size_t> selected = {};        // places of the runs that --only chooses
  std::vector<size_t> chosen = {};          // those of them that are of this shard
  // Where each run of the recipe is or will be; below another sweep's root if that has it as well.
  std::vector<std::filesystem::path> folders = {};
};

// Fills in what a config leaves to defaults, and checks it.
std::function<Config(const Config&)> resolver_of(const ComputeLibrary& library);

// An Error if the recipe has a mistake: an unknown key, runs of one name or of one config, a claim
// that no run can show, ...
PlannedSweep plan_sweep(const SweepRequest& request, const SweepPlaces& places);

// Sets the folders of all runs.  Runs of one config, which recipes and strict and tuned cases
// share, have one folder, so that they are trained once: that of the first sweep which selects
// them.
void place_runs(std::vector<PlannedSweep>& sweeps);

// "kelvin sweep table1 --scale laptop"; with the names of some runs, as --only takes them, if
// given.
std::string sweep_command(const PlannedSweep& sweep, const std::string& only = "");

// "table1-laptop": the folder of the runs, below that of all sweeps.
std::string sweep_folder(const PlannedSweep& sweep);

// "table1: no train.lr is chosen yet for mlp-tuned,temperature=1.0, which is done by: kelvin ...":
// one line; empty if nothing is undecided.
std::string undecided_text(const PlannedSweep& sweep);

}  // namespace kelvin
