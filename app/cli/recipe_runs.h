#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "kelvin/runs/recipe.h"

namespace kelvin {

// The built-in recipes of minutes on embedded data, which `kelvin demo` runs; the others are of
// papers, for `kelvin reproduce`.
const std::vector<std::string>& demo_recipes();
bool is_demo_recipe(const std::string& name);

// What a recipe leaves below `root`: recipe.toml, one run folder per planned run, and in planned/
// the command, the config each run was started with and its messages.
inline constexpr const char* kRecipeFile = "recipe.toml";

// The config that a run of the recipe is started with.
std::filesystem::path planned_config(const std::filesystem::path& root, const std::string& name);
// The messages of a run of the recipe.
std::filesystem::path planned_log(const std::filesystem::path& root, const std::string& name);

// A log that says nothing is not kept.
void remove_if_empty(const std::filesystem::path& file);

// Writes recipe.toml and planned/, unless they say the same already.  Several recipes, and several
// processes, may plan below one root; an Error if a run of the same name was planned otherwise.
// `command_of` tells how a run of that name alone can be made.
void write_plan(const Recipe& recipe, const std::string& recipe_text, const std::string& command,
                const std::filesystem::path& root,
                const std::function<std::string(const std::string&)>& command_of = {});

// What `command_of` said of the run when it was planned; empty if nothing.
std::string planned_command(const std::filesystem::path& root, const std::string& name);

struct RecipeRunsOptions {
  int64_t jobs = 1;   // runs at once
  std::string label;  // stands before the progress
  bool is_quiet = false;
  int64_t threads = 1;                     // of all of them together; each has one at least
  std::filesystem::path data_folder = {};  // where datasets lie
};

struct RecipeRunsResult {
  std::vector<std::filesystem::path> finished;  // run folders
  std::vector<std::string> failures;            // "NAME: why", one line each
  bool has_internal_error = false;
  bool was_interrupted = false;
};

// Throws if the recipe plans nothing, or its runs cannot have folders by their names.
void check_names(const Recipe& recipe);

// Throws, before anything is written, if some run of the recipe cannot be placed below `root`.
void check_can_run(const Recipe& recipe, const std::filesystem::path& root);

// Runs the whole recipe; runs that fail are reported, the others go on.
RecipeRunsResult run_recipe(const Recipe& recipe, const std::string& recipe_text,
                            const std::filesystem::path& root, const RecipeRunsOptions& options);

// Removes what an earlier run_recipe left below `root`, and nothing else.
void remove_recipe_runs(const std::filesystem::path& root);

// Throws if there is a run in or below `root` that no earlier run_recipe made.
void check_no_other_runs(const std::filesystem::path& root);

// Whether run_recipe has been there.
bool holds_recipe_runs(const std::filesystem::path& root);

// The command that ran the recipe below `root`; empty if that is not known.
std::string recipe_command(const std::filesystem::path& root);

}  // namespace kelvin
