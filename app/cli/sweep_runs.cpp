#include "app/cli/sweep_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "app/cli/child_runs.h"
#include "app/cli/common_flags.h"
#include "app/cli/human_text.h"
#include "app/cli/interrupts.h"
#include "app/cli/machine.h"
#include "app/cli/progress_bar.h"
#include "app/cli/recipe_progress.h"
#include "app/cli/recipe_runs.h"
#include "kelvin/core/check.h"
#include "kelvin/core/files.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

constexpr int kMostAttempts = 2;
constexpr auto kPatience = std::chrono::seconds(15);  // with a process that is just stopping
constexpr int64_t kMemoryOfARun = int64_t{2} << 30;

// What the system could give without swapping; 0 if it does not say.
int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) return 1024 * std::atoll(line.c_str() + 13);
  }
  return 0;
}

ChildRun child_for(const fs::path& root, const std::string& name, SweepState state,
                   const SweepOptions& options) {
  const auto run = (root / name).string();
  ChildRun child{.name = name, .arguments = {}, .log = planned_log(root, name)};
  if (state == SweepState::to_resume) {
    child.arguments = {"resume", run, "--quiet"};
  } else {
    child.arguments = {"train",    "--quiet", "--config",  planned_config(root, name).string(),
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
        progress_(sweep.root) {
    for (const auto place : sweep.chosen) {
      const auto& folder = sweep.folders.at(place);
      // Of strict and tuned runs of one config only the first is trained.
      if (folder.parent_path() != sweep.root || !folders_.insert(folder).second) {
        ++result_.shared;
        continue;
      }
      progress_.add(name_of_run(place));
      if (is_done(place)) {
        progress_.end(name_of_run(place));
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

  std::string name_of_run(size_t place) const { return sweep_.folders[place].filename(); }

  SweepState state_of(size_t place) const {
    return sweep_state(sweep_.folders[place], sweep_.resolved[place], kept_);
  }

  bool is_done(size_t place) const {
    const auto state = state_of(place);
    return state == SweepState::is_kept || state == SweepState::is_finished || is_lost(place);
  }

  // A trial whose value makes training fail has lost: that is what it was to tell.
  bool is_lost(size_t place) const {
    return sweep_.request.is_tuning && has_failed(sweep_.folders[place]);
  }

  // Starts all that nobody else is at work in; false if there is none.
  bool run_what_can_be() {
    std::vector<ChildRun> children;
    std::map<std::string, size_t> places;
    for (auto place = pending_.begin(); place != pending_.end();) {
      const auto state = state_of(*place);
      const auto name = name_of_run(*place);
      if (is_done(*place)) {
        // Another process has done it meanwhile.
        progress_.end(name);
        ++result_.done_before;
        place = pending_.erase(place);
        continue;
      }
      if (state != SweepState::is_elsewhere) {
        children.push_back(child_for(sweep_.root, name, state, options_));
        places[name] = *place;
      }
      ++place;
    }
    if (children.empty()) return false;
    const auto label = (sweep_.request.is_tuning ? "tune " : "sweep ") + sweep_.name;
    run_children(
        children,
        {.jobs = options_.jobs,
         .on_end = [&](const ChildOutcome& outcome) { end(places.at(outcome.name), outcome); },
         .on_wait = [&] { bar_.show(progress_.look(label)); }});
    return true;
  }

  void end(size_t place, const ChildOutcome& outcome) {
    remove_if_empty(planned_log(sweep_.root, outcome.name));
    const bool has_lost = outcome.exit_code == kUserError && is_lost(place);
    if (has_lost) bar_.say("loses: " + failure_text(outcome));
    if (outcome.exit_code == kSuccess || has_lost) {
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
  std::set<fs::path> folders_;
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

// Of a run that was to choose a setting by images held out, failing is a result as well.
bool is_lost_trial(const fs::path& folder) {
  if (!has_failed(folder)) return false;
  const auto config = load_run(folder).config;
  return config.has("data.test_on") && config.at("data.test_on") == "validation";
}

}  // namespace

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
  check_no_other_runs(sweep.root);
  write_plan(sweep.recipe, sweep.text, sweep_command(sweep), sweep.root,
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
      const bool is_result = load_status(folder) == RunStatus::finished || is_lost_trial(folder);
      if (!is_result || is_locked(folder)) continue;
      const auto run = has_failed(folder)
                           ? load_failed(folder.parent_path(), folder.filename().string())
                           : load_run(folder);
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
