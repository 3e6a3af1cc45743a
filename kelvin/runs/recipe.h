#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kelvin/runs/config.h"

namespace kelvin {

// The files of recipes/ by their names without extension, compiled in so that
// the tool works from anywhere.
const std::map<std::string, std::string>& builtin_recipes();

// The files of recipes/expected/: what a paper prints, by the name of the recipe.
const std::map<std::string, std::string>& expected_numbers();

// "Reading `reading` is `direction` in the runs that match `at` than in those that match
// `against`."
struct Claim {
  std::string reading;
  std::string direction;  // "lower" or "higher"
  Values at;
  Values against;
  // Which of the readings of that name: its layer, split, detector or ood, and of its definition
  // gamma, shift_free or bias.  What is not said is as in tables: each detector and OOD dataset for
  // itself, and else the default.
  Values of = {};
};

struct PlannedRun {
  std::string name;  // of its folder, unique in the recipe
  Config config;
  std::string case_name = {};  // of its [[case]]; empty if the recipe has none
  std::string tuning = {};     // name of the Tuning that chose a setting of it; empty: strict
};

// What a tuned case tries at one place of what it sweeps over, but for the seed: its runs there all
// get the value that does best.
struct Tuning {
  std::string name;                     // "mlp-tuned,temperature=30.0"
  std::string key;                      // "train.lr"
  std::vector<PlannedRun> trials = {};  // one for each value of the grid, ascending
};

// The value that was chosen; nothing if none is yet.
using ChosenValue = std::function<std::optional<Value>(const Tuning&)>;

// The smallest of the grid: for asking what runs there will be.
std::optional<Value> first_of_grid(const Tuning& tuning);

// A declarative experiment: what to run, and what is expected of the results.
struct Recipe {
  std::string title;  // the first comment line of the file
  std::vector<PlannedRun> runs;
  std::vector<Claim> claims;
  std::vector<std::string> scales = {};  // the names there are
  std::vector<Tuning> tunings = {};      // of all tuned cases
};

// Reads a recipe: plain config tables, [scale.NAME] overrides of which one is
// chosen, [[case]] (named sets of keys that vary together), [sweep] (a grid over
// lists), [[claim]].  The runs are the product of cases and grid.  A case may have
// lists of its own ("sweep.train.temperature"), and a scale may change single cases
// ([[scale.NAME.case]]).  `overrides` come last, also those of lists ("sweep.seed").
// A case with "tune." keys is tuned: its runs have the value that `chosen` gives for their tuning,
// and are left out while it gives none.
Recipe parse_recipe(std::string_view toml, const std::string& origin, const std::string& scale,
                    const Config& overrides = {}, const ChosenValue& chosen = {});

}  // namespace kelvin
