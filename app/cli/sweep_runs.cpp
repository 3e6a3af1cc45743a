#include "app/cli/sweep_runs.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "app/cli/child_runs.h"
#include "app/cli/common_flags.h"
#include "app/cli/config_paths.h"
#include "app/cli/human_text.h"
#include "app/cli/interrupts.h"
#include "app/cli/machine.h"
#include "app/cli/measured_names.h"
#include "app/cli/metadata.h"
#include "app/cli/progress_bar.h"
#include "app/cli/recipe_progress.h"
#include "app/cli/recipe_runs.h"
#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

constexpr auto kDefaultScale = "laptop";
constexpr int kMostAttempts = 2;
constexpr auto kPatience = std::chrono::seconds(15);  // with a process that is just stopping
constexpr int64_t kMemoryOfARun = int64_t{2} << 30;

std::string text_of_recipe(const std::string& name) {
  const auto& builtin = builtin_recipes();
  if (const auto found = builtin.find(name); found != builtin.end()) return found->second;
  std::vector<std::string> names;
  names.reserve(builtin.size());
  for (const auto& [each, text] : builtin) names.push_back(each);
  check(fs::is_regular_file(name), "no recipe named '", name,
        "', nor a file of that name; there are: ", join(names, ", "));
  return read_file(name);
}

// Every message about a run says which one it is.
Config resolved_of(const PlannedRun& run, const std::string& recipe, const ComputeLibrary& library,
                   const fs::path& data_folder) {
  auto config = run.config;
  try {
    make_paths_absolute(config, data_folder);
    return library.run(ResolveRequest{.config = config});
  } catch (const Error& error) {
    check(false, recipe, ": run '", run.name, "': ", error.what());
  }
  return config;
}

bool fits(const Config& config, const Values& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& entry) {
    return config.has(entry.first) && config.at(entry.first) == entry.second;
  });
}

void check_claims(const PlannedSweep& sweep) {
  for (const auto& claim : sweep.recipe.claims) {
    for (const auto* side : {&claim.at, &claim.against}) {
      bool is_planned = false;
      for (const auto& config : sweep.resolved) {
        if (!fits(config, *side)) continue;
        is_planned = true;
        check(is_measured(claim.reading, config), sweep.name, ": claim on '", claim.reading,
              "': no measure of its runs reads that; measure.names are ",
              config.at("measure.names").dump());
      }
      check(is_planned, sweep.name, ": claim on '", claim.reading, "': no run has ",
            Value(*side).dump());
    }
  }
}

void check_distinct(const PlannedSweep& sweep) {
  std::map<std::string, std::string> names;  // by config
  for (size_t i = 0; i < sweep.resolved.size(); ++i) {
    const auto& name = sweep.recipe.runs[i].name;
    const auto [other, is_new] = names.emplace(config_hash(sweep.resolved[i]), name);
    check(is_new, sweep.name, ": runs '", other->second, "' and '", name, "' have one config");
  }
}

std::vector<size_t> selected_runs(const PlannedSweep& sweep) {
  const auto& request = sweep.request;
  std::vector<size_t> matching;
  for (size_t i = 0; i < sweep.recipe.runs.size(); ++i) {
    const auto& name = sweep.recipe.runs[i].name;
    const bool is_wanted = request.only.empty() || request.only == name ||
                           ::fnmatch(request.only.c_str(), name.c_str(), 0) == 0;
    if (is_wanted) matching.push_back(i);
  }
  check(!matching.empty(), "--only: no run of ", sweep.name, " is called '", request.only,
        "'; the first is '", sweep.recipe.runs.front().name, "'");
  return matching;
}

std::vector<size_t> runs_of_shard(const PlannedSweep& sweep) {
  const auto& request = sweep.request;
  check(request.shards >= 1 && request.shard >= 1 && request.shard <= request.shards,
        "--shard: must be i/n with i from 1 to n, got ", request.shard, "/", request.shards);
  std::vector<size_t> chosen;
  for (size_t i = 0; i < sweep.selected.size(); ++i) {
    if (static_cast<int64_t>(i) % request.shards == request.shard - 1) {
      chosen.push_back(sweep.selected[i]);
    }
  }
  return chosen;
}

// What the system could give without swapping; 0 if it does not say.
int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) return 1024 * std::atoll(line.c_str() + 13);
  }
  return 0;
}

ChildRun child_for(const std::string& name, SweepState state, const SweepOptions& options) {
  const auto run = (options.root / name).string();
  ChildRun child{.name = name, .arguments = {}, .log = planned_log(options.root, name)};
  if (state == SweepState::to_resume) {
    child.arguments = {"resume", run, "--quiet"};
  } else {
    child.arguments = {
        "train",    "--quiet", "--config",  planned_config(options.root, name).string(),
        "--output", run,       "--threads", std::to_string(options.threads)};
  }
  child.arguments.insert(child.arguments.end(), {"--data-dir", options.data_folder.string()});
  return child;
}

// The runs of a sweep that are not done yet, and what became of them.
class SweepAtWork {
 public:
  SweepAtWork(const PlannedSweep& sweep, const KeptReadings& kept, const SweepOptions& options)
      : sweep_(sweep),
        kept_(kept),
        options_(options),
        bar_(options.is_quiet),
        progress_(options.root) {
    for (const auto place : sweep.chosen) {
      const auto& name = sweep.recipe.runs[place].name;
      if (sweep.folders.at(place) != options.root / name) {
        ++result_.shared;
        continue;
      }
      progress_.add(name);
      if (is_done(place)) {
        progress_.end(name);
        ++result_.done_before;
      } else {
        pending_.insert(place);
      }
    }
  }

  SweepResult run() {
    catch_interrupts(SecondInterrupt::is_counted);
    auto waited_since = Clock::now();
    while (interrupts() == 0 && !pending_.empty()) {
      if (run_what_can_be()) {
        waited_since = Clock::now();
        continue;
      }
      if (pending_.empty() || Clock::now() - waited_since > kPatience) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    bar_.clear();
    result_.was_interrupted = interrupts() > 0;
    for (const auto place : pending_) {
      if (state_of(place) == SweepState::is_elsewhere) ++result_.elsewhere;
    }
    for (const auto& [place, failure] : failures_) result_.failures.push_back(failure);
    return result_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  SweepState state_of(size_t place) const {
    return sweep_state(sweep_.folders[place], sweep_.resolved[place], kept_);
  }

  bool is_done(size_t place) const {
    const auto state = state_of(place);
    return state == SweepState::is_kept || state == SweepState::is_finished;
  }

  // Starts all that nobody else is at work in; false if there is none.
  bool run_what_can_be() {
    std::vector<ChildRun> children;
    std::map<std::string, size_t> places;
    for (auto place = pending_.begin(); place != pending_.end();) {
      const auto state = state_of(*place);
      const auto& name = sweep_.recipe.runs[*place].name;
      if (state == SweepState::is_kept || state == SweepState::is_finished) {
        // Another process has done it meanwhile.
        progress_.end(name);
        ++result_.done_before;
        place = pending_.erase(place);
        continue;
      }
      if (state != SweepState::is_elsewhere) {
        children.push_back(child_for(name, state, options_));
        places[name] = *place;
      }
      ++place;
    }
    if (children.empty()) return false;
    const auto label = "sweep " + sweep_.name;
    run_children(
        children,
        {.jobs = options_.jobs,
         .on_end = [&](const ChildOutcome& outcome) { end(places.at(outcome.name), outcome); },
         .on_wait = [&] { bar_.show(progress_.look(label)); }});
    return true;
  }

  void end(size_t place, const ChildOutcome& outcome) {
    remove_if_empty(planned_log(options_.root, outcome.name));
    if (outcome.exit_code == kSuccess) {
      progress_.end(outcome.name);
      ++result_.finished;
      pending_.erase(place);
      return;
    }
    if (interrupts() > 0) return;  // stopped because it was asked to
    // Somebody else was faster.
    if (state_of(place) == SweepState::is_elsewhere || is_done(place)) return;
    const auto failure = failure_text(outcome);
    if (++attempts_[place] < kMostAttempts) {
      bar_.say("tried again: " + failure);
      return;
    }
    bar_.say("failed: " + failure);
    failures_[place] = failure;
    result_.has_internal_error |= outcome.exit_code != kUserError;
    progress_.end(outcome.name);
    pending_.erase(place);
  }

  const PlannedSweep& sweep_;
  const KeptReadings& kept_;
  const SweepOptions& options_;
  ProgressBar bar_;
  RecipeProgress progress_;
  std::set<size_t> pending_;
  std::map<size_t, int> attempts_;
  std::map<size_t, std::string> failures_;
  SweepResult result_;
};

// How the run in `folder` can be made again.
std::string command_of(const Run& run) {
  auto planned = planned_command(run.path.parent_path(), run.path.filename().string());
  if (!planned.empty()) return planned;
  const auto command = run.metadata.find("command");
  return command != run.metadata.end() && command->is_string() ? command->get<std::string>() : "";
}

}  // namespace

std::function<Config(const Config&)> resolver_of(const ComputeLibrary& library) {
  return [library](const Config& config) { return library.run(ResolveRequest{.config = config}); };
}

PlannedSweep plan_sweep(const SweepRequest& request, const ComputeLibrary& library,
                        const fs::path& data_folder) {
  PlannedSweep sweep{.request = request,
                     .name = fs::path(request.recipe).stem().string(),
                     .text = text_of_recipe(request.recipe),
                     .recipe = {}};
  Config overrides;
  for (const auto& assignment : request.overrides) overrides.apply_override(assignment);
  auto& scale = sweep.request.scale;
  if (scale.empty()) {
    const auto scales = parse_recipe(sweep.text, request.recipe, "").scales;
    const bool has_default = std::find(scales.begin(), scales.end(), kDefaultScale) != scales.end();
    if (has_default) scale = kDefaultScale;
  }
  sweep.recipe = parse_recipe(sweep.text, request.recipe, scale, overrides);
  check_names(sweep.recipe);
  for (const auto& run : sweep.recipe.runs) {
    sweep.resolved.push_back(resolved_of(run, sweep.name, library, data_folder));
  }
  check_distinct(sweep);
  check_claims(sweep);
  sweep.selected = selected_runs(sweep);
  sweep.chosen = runs_of_shard(sweep);
  return sweep;
}

void place_runs(std::vector<PlannedSweep>& sweeps,
                const std::function<fs::path(const PlannedSweep&)>& root_of) {
  std::map<std::string, fs::path> homes;  // by config
  for (auto& sweep : sweeps) {
    const auto root = root_of(sweep);
    sweep.folders.clear();
    for (const auto& run : sweep.recipe.runs) sweep.folders.push_back(root / run.name);
    for (const auto place : sweep.selected) {
      auto& folder = sweep.folders[place];
      folder = homes.emplace(config_hash(sweep.resolved[place]), folder).first->second;
    }
  }
}

std::string sweep_command(const PlannedSweep& sweep, const std::string& only) {
  std::vector<std::string> words = {"kelvin", "sweep", sweep.request.recipe};
  if (!sweep.request.scale.empty()) {
    words.insert(words.end(), {"--scale", sweep.request.scale});
  }
  words.insert(words.end(), sweep.request.overrides.begin(), sweep.request.overrides.end());
  if (!only.empty()) words.insert(words.end(), {"--only", only});
  return shell_command(words);
}

std::string sweep_folder(const PlannedSweep& sweep) {
  auto name = sweep.name + (sweep.request.scale.empty() ? "" : "-" + sweep.request.scale);
  for (auto setting : sweep.request.overrides) {
    // More seeds are more runs beside the others; other settings are other runs.
    if (setting.starts_with("sweep.")) continue;
    std::replace(setting.begin(), setting.end(), '/', '_');
    name += "," + setting;
  }
  return name;
}

std::string name_of(SweepState state) {
  switch (state) {
    case SweepState::is_kept:
      return "kept";
    case SweepState::is_finished:
      return "finished";
    case SweepState::is_elsewhere:
      return "running";
    case SweepState::to_resume:
      return "to resume";
    case SweepState::to_train:
      return "to train";
  }
  return "";
}

SweepState sweep_state(const fs::path& run, const Config& resolved, const KeptReadings& kept) {
  if (kept.find(resolved)) return SweepState::is_kept;
  if (!is_run(run)) return SweepState::to_train;
  if (is_locked(run)) return SweepState::is_elsewhere;
  try {
    if (load_status(run) == RunStatus::finished) return SweepState::is_finished;
  } catch (const Error&) {  // a damaged folder: resuming says what is wrong with it
  }
  return SweepState::to_resume;
}

SweepResult run_sweep(const PlannedSweep& sweep, const KeptReadings& kept,
                      const SweepOptions& options) {
  check(options.jobs >= 1, "jobs: must be at least 1, got ", options.jobs);
  check_no_other_runs(options.root);
  write_plan(sweep.recipe, sweep.text, sweep_command(sweep), options.root,
             [&](const std::string& name) { return sweep_command(sweep, name); });
  return SweepAtWork(sweep, kept, options).run();
}

int64_t default_jobs(int64_t threads) {
  const auto by_cores = std::max<int64_t>(usable_cores() / threads, 1);
  const auto memory = available_memory();
  const auto by_memory = memory > 0 ? std::max<int64_t>(memory / kMemoryOfARun, 1) : by_cores;
  return std::min(by_cores, by_memory);
}

Harvest harvest(const fs::path& root, const fs::path& readings) {
  Harvest result;
  for (const auto& folder : find_runs(root, warn_people)) {
    try {
      if (load_status(folder) != RunStatus::finished || is_locked(folder)) continue;
      const auto run = load_run(folder);
      ++result.finished;
      // What is kept already stays as it is: numbers in a repository do not change by themselves.
      if (fs::exists(readings / (config_hash(run.config) + ".json"))) continue;
      keep_readings(readings, run, command_of(run));
      ++result.written;
    } catch (const Error& error) {
      warn_people(std::string("a run is left out: ") + error.what());
    }
  }
  return result;
}

}  // namespace kelvin
