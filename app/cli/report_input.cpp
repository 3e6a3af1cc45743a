#include "app/cli/report_input.h"

#include <algorithm>
#include <set>

#include "app/cli/human_text.h"
#include "app/cli/recipe_runs.h"
#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/text.h"

namespace kelvin {

namespace fs = std::filesystem;

namespace {

// "mlp" of the folder "mlp,seed=1" below a recipe's root, if the recipe has such a case.
std::string case_of(const fs::path& folder, const fs::path& root, const Recipe& recipe) {
  const auto name = folder.filename().string();
  const auto first = name.substr(0, name.find(','));
  const bool is_known = folder.lexically_relative(root) == folder.filename() &&
                        std::any_of(recipe.runs.begin(), recipe.runs.end(),
                                    [&](const PlannedRun& run) { return run.case_name == first; });
  return is_known ? first : "";
}

void append_readable(const fs::path& folder, std::vector<Run>& runs) {
  try {
    runs.push_back(load_run(folder));
  } catch (const std::runtime_error& error) {  // an Error, or what the file system says
    warn_people(std::string("a run is left out: ") + error.what());
  }
}

}  // namespace

PageInput page_input(const std::vector<fs::path>& roots) {
  PageInput input;
  std::set<fs::path> seen;
  std::vector<std::string> names;
  for (const auto& root : roots) {
    names.push_back(root.string());
    Recipe recipe;
    if (const auto file = root / kRecipeFile; fs::is_regular_file(file)) {
      recipe = parse_recipe(read_file(file), file.string(), /*scale=*/"", {}, first_of_grid);
    }
    for (const auto& folder : find_runs(root, warn_people)) {
      if (!seen.insert(fs::canonical(folder)).second) continue;
      // A run that was named must be readable; one damaged run of many must not hide the others.
      if (folder == root) {
        input.runs.push_back(load_run(folder));
      } else {
        append_readable(folder, input.runs);
      }
      input.cases.resize(input.runs.size(), case_of(folder, root, recipe));
    }
    if (!input.claims.empty() || recipe.runs.empty()) continue;
    input.title = recipe.title;
    input.claims = recipe.claims;
    input.command = recipe_command(root);
  }
  check(!input.runs.empty(), join(names, ", "), ": holds no runs",
        seen.empty() ? "" : " that can be read");
  if (input.title.empty()) input.title = join(names, ", ");
  if (input.command.empty() && input.runs.size() == 1) {
    const auto& metadata = input.runs.front().metadata;
    const auto command = metadata.find("command");
    if (command != metadata.end() && command->is_string()) input.command = *command;
  }
  return input;
}

void write_page(const PageInput& input, const fs::path& path) {
  std::error_code failure;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), failure);
  check(!failure, path.string(), ": its folder cannot be made: ", failure.message());
  write_file_atomically(path, render_page(input));
}

}  // namespace kelvin
