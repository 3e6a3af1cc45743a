#include "app/cli/recipe_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "app/cli/child_runs.h"
#include "app/cli/common_flags.h"
#include "app/cli/interrupts.h"
#include "app/cli/metadata.h"
#include "app/cli/progress_bar.h"
#include "app/cli/recipe_progress.h"
#include "kelvin/core/check.h"
#include "kelvin/core/file_lock.h"
#include "kelvin/core/files.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

constexpr auto kPlanned = "planned";
constexpr auto kCommand = "command";
constexpr auto kReport = "report.html";
const std::string kMadeBy = "# made by: ";

ChildRun child_of(const PlannedRun& run, const fs::path& root, int64_t threads,
                  const fs::path& data_folder) {
  return {.name = run.name,
          .arguments = {"train", "--quiet", "--config", planned_config(root, run.name).string(),
                        "--output", (root / run.name).string(), "--threads",
                        std::to_string(threads), "--data-dir", data_folder.string()},
          .log = planned_log(root, run.name)};
}

// Names of the runs that an earlier run_recipe planned below `root`.
std::vector<std::string> planned_names(const fs::path& root) {
  std::vector<std::string> names;
  if (!fs::is_directory(root / kPlanned)) return names;
  for (const auto& file : fs::directory_iterator(root / kPlanned)) {
    if (file.path().extension() == ".toml") names.push_back(file.path().stem().string());
  }
  return names;
}

void write_if_new(const fs::path& path, const std::string& text) {
  if (!fs::is_regular_file(path) || read_file(path) != text) write_file_atomically(path, text);
}

// What somebody else needs a moment for; an Error if it takes longer.
FileLock lock_of_plan(const fs::path& root) {
  const auto path = root / kPlanned / "lock";
  auto lock = FileLock::try_take(path);
  for (int i = 0; i < 200 && !lock; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    lock = FileLock::try_take(path);
  }
  check(lock.has_value(), path.string(), ": another process holds it");
  return std::move(*lock);
}

// "train.lr 0.1 instead of 0.5"
std::string difference_of(const Config& then, const Config& now) {
  for (const auto& [key, value] : now.values()) {
    if (then.has(key) && then.at(key) == value) continue;
    return key + " " + (then.has(key) ? then.at(key).dump() : "unset") + " instead of " +
           value.dump();
  }
  for (const auto& [key, value] : then.values()) {
    if (!now.has(key)) return key + " " + value.dump() + " instead of unset";
  }
  return "";
}

void check_same_plan(const Recipe& recipe, const fs::path& root) {
  for (const auto& run : recipe.runs) {
    const auto path = planned_config(root, run.name);
    if (!fs::is_regular_file(path)) continue;
    const auto difference = difference_of(Config::load(path), run.config);
    check(difference.empty(), path.string(), ": plans another run of this name (", difference,
          "); choose another --output");
  }
}

}  // namespace

const std::vector<std::string>& demo_recipes() {
  static const std::vector<std::string> names = {"demo", "demo_tuned", "trade_off"};
  return names;
}

bool is_demo_recipe(const std::string& name) {
  const auto& names = demo_recipes();
  return std::find(names.begin(), names.end(), name) != names.end();
}

fs::path planned_config(const fs::path& root, const std::string& name) {
  return root / kPlanned / (name + ".toml");
}

fs::path planned_log(const fs::path& root, const std::string& name) {
  return root / kPlanned / (name + ".log");
}

void remove_if_empty(const fs::path& file) {
  std::error_code ignored;
  if (fs::file_size(file, ignored) == 0) fs::remove(file, ignored);
}

void write_plan(const Recipe& recipe, const std::string& recipe_text, const std::string& command,
                const fs::path& root,
                const std::function<std::string(const std::string&)>& command_of) {
  std::error_code failure;
  fs::create_directories(root / kPlanned, failure);
  check(!failure, root.string(), ": cannot be made: ", failure.message());
  const auto lock = lock_of_plan(root);
  check_same_plan(recipe, root);
  write_if_new(root / kRecipeFile, recipe_text);
  write_if_new(root / kPlanned / kCommand, command + "\n");
  for (const auto& run : recipe.runs) {
    const auto head = command_of ? kMadeBy + command_of(run.name) + "\n" : "";
    write_if_new(planned_config(root, run.name), head + run.config.to_toml());
  }
}

std::string planned_command(const fs::path& root, const std::string& name) {
  const auto path = planned_config(root, name);
  if (!fs::is_regular_file(path)) return "";
  const auto text = read_file(path);
  if (!text.starts_with(kMadeBy)) return "";
  return text.substr(kMadeBy.size(), text.find('\n') - kMadeBy.size());
}

bool holds_recipe_runs(const fs::path& root) {
  return fs::is_regular_file(root / kRecipeFile) && fs::is_directory(root / kPlanned);
}

void check_no_other_runs(const fs::path& root) {
  if (!fs::exists(root)) return;
  const auto names = planned_names(root);
  for (const auto& folder : find_runs(root)) {
    const bool is_planned = std::any_of(
        names.begin(), names.end(), [&](const std::string& name) { return folder == root / name; });
    check(is_planned, root.string(), ": holds another run, ", folder.string(),
          "; choose another --output");
  }
}

std::string recipe_command(const fs::path& root) {
  const auto path = root / kPlanned / kCommand;
  if (!fs::is_regular_file(path)) return "";
  const auto text = read_file(path);
  return text.substr(0, text.find('\n'));
}

void remove_recipe_runs(const fs::path& root) {
  for (const auto& name : planned_names(root)) {
    if (is_run(root / name)) fs::remove_all(root / name);
  }
  fs::remove_all(root / kPlanned);
  fs::remove(root / kRecipeFile);
  fs::remove(root / kReport);
}

void check_names(const Recipe& recipe) {
  check(!recipe.runs.empty(), "recipe: plans no runs");
  std::set<std::string> names;
  for (const auto& run : recipe.runs) {
    const bool is_file_name = !run.name.empty() && run.name.front() != '.' &&
                              run.name.find('/') == std::string::npos && run.name != kPlanned;
    check(is_file_name, "recipe: run '", run.name, "': its name must do as a folder's name");
    check(names.insert(run.name).second, "recipe: two runs are called '", run.name, "'");
  }
}

void check_can_run(const Recipe& recipe, const fs::path& root) {
  check_names(recipe);
  for (const auto& run : recipe.runs) check_can_create_run(root / run.name);
}

RecipeRunsResult run_recipe(const Recipe& recipe, const std::string& recipe_text,
                            const fs::path& root, const RecipeRunsOptions& options) {
  check(options.jobs >= 1, "jobs: must be at least 1, got ", options.jobs);
  check_can_run(recipe, root);
  write_plan(recipe, recipe_text, command_line(), root);

  const auto jobs = std::min(options.jobs, static_cast<int64_t>(recipe.runs.size()));
  const auto threads = std::max<int64_t>(options.threads / jobs, 1);
  ProgressBar bar(options.is_quiet);
  RecipeProgress progress(root);
  std::vector<ChildRun> children;
  for (const auto& run : recipe.runs) {
    children.push_back(child_of(run, root, threads, options.data_folder));
    progress.add(run.name);
  }

  RecipeRunsResult result;
  const auto on_end = [&](const ChildOutcome& outcome) {
    progress.end(outcome.name);
    remove_if_empty(planned_log(root, outcome.name));
    if (outcome.exit_code == kSuccess) {
      result.finished.push_back(root / outcome.name);
      return;
    }
    if (interrupts() > 0) return;  // stopped because it was asked to
    result.failures.push_back(failure_text(outcome));
    result.has_internal_error = result.has_internal_error || outcome.exit_code != kUserError;
    bar.say("failed: " + result.failures.back());
  };
  run_children(children, {.jobs = jobs, .on_end = on_end, .on_wait = [&] {
                            bar.show(progress.look(options.label));
                          }});
  std::sort(result.finished.begin(), result.finished.end());
  result.was_interrupted = interrupts() > 0;
  return result;
}

}  // namespace kelvin
