#pragma once

#include <string>
#include <vector>

#include "kelvin/runs/recipe.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {

struct PageInput {
  std::string title = {};
  std::vector<Run> runs = {};
  std::vector<std::string> cases = {};  // of the recipe, one for each run; empty: not known
  std::vector<Claim> claims = {};
  std::string command = {};  // what made the runs; may be empty
};

// One HTML file that needs nothing else and asks for nothing: what was
// compared, in words, tables and figures.  Throws an Error for no runs.
std::string render_page(const PageInput& input);

}  // namespace kelvin
