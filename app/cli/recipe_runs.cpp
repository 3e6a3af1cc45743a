#include "app/cli/recipe_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>

#include "app/cli/child_runs.h"
#include "app/cli/common_flags.h"
#include "app/cli/interrupts.h"
#include "app/cli/metadata.h"
#include "app/cli/progress_bar.h"
#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

constexpr auto kPlanned = "planned";
constexpr auto kCommand = "command";
constexpr auto kReport = "report.html";

fs::path planned_config(const fs::path& root, const std::string& name) {
  return root / kPlanned / (name + ".toml");
}

// The last complete line of a file that may be growing; empty if there is none.
std::string last_whole_line_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  constexpr std::streamoff kTail = 8192;
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(size - kTail, 0));
  std::string tail(std::istreambuf_iterator<char>(file), {});
  tail.resize(tail.rfind('\n') == std::string::npos ? 0 : tail.rfind('\n'));
  const auto newline = tail.rfind('\n');
  return newline == std::string::npos ? tail : tail.substr(newline + 1);
}

// How far the runs of a recipe are, as their folders tell.
class RecipeProgress {
 public:
  explicit RecipeProgress(const fs::path& root) : root_(root) {}

  void add(const std::string& name) { runs_[name] = {}; }
  void end(const std::string& name) {
    runs_[name].has_ended = true;
    runs_[name].epochs_done = runs_[name].epochs;
  }

  // Reads the folders at most twice a second.
  Activity look(const std::string& label) {
    const auto now = Clock::now();
    if (now - looked_ > std::chrono::milliseconds(500)) {
      looked_ = now;
      for (auto& [name, run] : runs_) update(name, run);
    }
    double done = 0;
    double epochs = 0;
    int64_t ended = 0;
    for (const auto& [name, run] : runs_) {
      done += run.has_ended ? 1 : share_done(run);
      epochs += run.epochs_done;
      ended += run.has_ended ? 1 : 0;
    }
    const double seconds = std::chrono::duration<double>(now - started_).count();
    return {.label = label,
            .done = done,
            .total = static_cast<double>(runs_.size()),
            .rate = fmt::format("{}/{} runs", ended, runs_.size()) +
                    (epochs > 0 ? fmt::format(", {:.2g} epochs/s", epochs / seconds) : "")};
  }

 private:
  using Clock = std::chrono::steady_clock;

  struct State {
    bool has_ended = false;
    double epochs_done = 0;
    double epochs = 0;  // 0: not known yet
  };

  // After the last epoch a run still has to be measured.
  static double share_done(const State& run) {
    return run.epochs > 0 ? std::min(run.epochs_done / run.epochs, 0.97) : 0;
  }

  void update(const std::string& name, State& run) const {
    if (run.has_ended || !is_run(root_ / name)) return;
    if (run.epochs == 0) {
      const auto config = Config::load(root_ / name / "config.toml");
      if (config.has("train.epochs")) run.epochs = config.at("train.epochs").get<double>();
    }
    const auto line =
        nlohmann::json::parse(last_whole_line_of(root_ / name / "metrics.jsonl"), nullptr,
                              /*allow_exceptions=*/false);
    if (line.is_object() && line.contains("epoch") && line["epoch"].is_number()) {
      run.epochs_done = line["epoch"].get<double>();
    }
  }

  fs::path root_;
  std::map<std::string, State> runs_;
  Clock::time_point started_ = Clock::now();
  Clock::time_point looked_ = {};
};

ChildRun child_of(const PlannedRun& run, const fs::path& root, int64_t threads,
                  const fs::path& data_folder) {
  return {.name = run.name,
          .arguments = {"train", "--quiet", "--config", planned_config(root, run.name).string(),
                        "--output", (root / run.name).string(), "--threads",
                        std::to_string(threads), "--data-dir", data_folder.string()},
          .log = root / kPlanned / (run.name + ".log")};
}

std::string failure_of(const ChildOutcome& outcome) {
  if (!outcome.last_line.empty()) return outcome.name + ": " + outcome.last_line;
  if (outcome.exit_code > 128) {
    return fmt::format("{}: ended by signal {}", outcome.name, outcome.exit_code - 128);
  }
  return fmt::format("{}: exit code {}", outcome.name, outcome.exit_code);
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

void remove_if_empty(const fs::path& file) {
  std::error_code ignored;
  if (fs::file_size(file, ignored) == 0) fs::remove(file, ignored);
}

void write_plan(const Recipe& recipe, const std::string& recipe_text, const fs::path& root) {
  std::error_code failure;
  fs::create_directories(root / kPlanned, failure);
  check(!failure, root.string(), ": cannot be made: ", failure.message());
  write_file_atomically(root / kRecipeFile, recipe_text);
  write_file_atomically(root / kPlanned / kCommand, command_line() + "\n");
  for (const auto& run : recipe.runs) {
    write_file_atomically(planned_config(root, run.name), run.config.to_toml());
  }
}

}  // namespace

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

void check_can_run(const Recipe& recipe, const fs::path& root) {
  check(!recipe.runs.empty(), "recipe: plans no runs");
  std::set<std::string> names;
  for (const auto& run : recipe.runs) {
    const bool is_file_name = !run.name.empty() && run.name.front() != '.' &&
                              run.name.find('/') == std::string::npos && run.name != kPlanned;
    check(is_file_name, "recipe: run '", run.name, "': its name must do as a folder's name");
    check(names.insert(run.name).second, "recipe: two runs are called '", run.name, "'");
    check_can_create_run(root / run.name);
  }
}

RecipeRunsResult run_recipe(const Recipe& recipe, const std::string& recipe_text,
                            const fs::path& root, const RecipeRunsOptions& options) {
  check(options.jobs >= 1, "jobs: must be at least 1, got ", options.jobs);
  check_can_run(recipe, root);
  write_plan(recipe, recipe_text, root);

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
    remove_if_empty(root / kPlanned / (outcome.name + ".log"));
    if (outcome.exit_code == kSuccess) {
      result.finished.push_back(root / outcome.name);
      return;
    }
    if (interrupts() > 0) return;  // stopped because it was asked to
    result.failures.push_back(failure_of(outcome));
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
