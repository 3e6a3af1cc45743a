#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kelvin/runs/run_folder.h"

namespace kelvin {

// A setting such as the learning rate is chosen by trials: runs with each value of a grid, on a
// seed that is in no table, judged by images that are held out of training.

// What a recipe says of that, under "tune." of a case.
struct TuneSettings {
  std::string key = {};          // "train.lr"
  std::vector<Value> grid = {};  // numbers, ascending
  int64_t samples = 0;           // training images that are held out
  int64_t seed = 0;              // of the trials
};

// Reads tune.KEY, tune.samples and tune.seed, given without "tune."; an Error if one of them is
// missing, or if there is nothing to choose from.
TuneSettings tune_settings(const Values& values, const std::string& origin);

// The config of a trial of `run`: as the run, but on fewer training images, with the seed of trials
// and nothing measured but accuracy, on the images held out.
Config trial_config(Config run, const TuneSettings& tune, const Value& value);

// What came of a trial; neither accuracy nor failure: it is not there yet.
struct TrialResult {
  double value = 0;
  std::optional<double> accuracy = {};  // on the images held out
  std::string failure = {};             // what the trial said when it failed
};

// Of a trial that has finished or failed.  An Error if it finished without an accuracy.
TrialResult trial_result(const Run& trial, double value);

// The place of the highest accuracy.  Of equal ones the smallest value wins, a failed trial loses.
// Nothing while a trial is not there, and if all failed.
std::optional<size_t> best_trial(const std::vector<TrialResult>& results);

}  // namespace kelvin
