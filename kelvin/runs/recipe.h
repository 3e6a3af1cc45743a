#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kelvin/runs/config.h"

namespace kelvin {

// The files of recipes/ by their names without extension, compiled in so that
// the tool works from anywhere.
const std::map<std::string, std::string>& builtin_recipes();

// "Reading `reading` is `direction` in the runs that match `at` than in those that match
// `against`."
struct Claim {
  std::string reading;
  std::string direction;  // "lower" or "higher"
  Values at;
  Values against;
};

struct PlannedRun {
  std::string name;  // of its folder, unique in the recipe
  Config config;
};

// A declarative experiment: what to run, and what is expected of the results.
struct Recipe {
  std::string title;  // the first comment line of the file
  std::vector<PlannedRun> runs;
  std::vector<Claim> claims;
};

// Reads a recipe: plain config tables, [scale.NAME] overrides of which one is
// chosen, [[case]] (named sets of keys that vary together), [sweep] (a grid over
// lists), [[claim]].  The runs are the product of cases and grid.
Recipe parse_recipe(std::string_view toml, const std::string& origin, const std::string& scale);

}  // namespace kelvin
