#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <sstream>

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/human_text.h"
#include "app/cli/interrupts.h"
#include "app/cli/run_context.h"
#include "app/cli/setting_words.h"
#include "app/cli/sweep_runs.h"
#include "app/cli/terminal.h"
#include "app/cli/verb.h"
#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/text.h"
#include "kelvin/experiment/tasks/plan.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kNiceness = 10;  // of a queue, which runs for days beside other work

// "2/3": the second of three.
void read_shard(const std::string& text, SweepRequest& request) {
  if (text.empty()) return;
  const auto parts = split(text, '/');
  check(parts.size() == 2, "--shard: must be i/n, got '", text, "'");
  request.shard = whole_number_of("--shard", parts[0]);
  request.shards = whole_number_of("--shard", parts[1]);
}

// A line of a queue: RECIPE, then --scale, --tune, --only and settings, as on the command line.
SweepRequest request_of_line(const std::string& line, const std::string& origin) {
  SweepRequest request;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    if (word == "--scale" || word == "--only") {
      std::string value;
      check(static_cast<bool>(words >> value), origin, ": ", word, ": needs a value");
      (word == "--scale" ? request.scale : request.only) = value;
    } else if (word == "--tune") {
      request.is_tuning = true;
    } else if (is_setting(word)) {
      request.overrides.push_back(word);
    } else {
      check(!word.starts_with("-") && request.recipe.empty(), origin, ": unexpected '", word,
            "'; a line is RECIPE [--scale S] [--tune] [--only NAMES] [key=value ...]");
      request.recipe = word;
    }
  }
  check(!request.recipe.empty(), origin, ": names no recipe");
  return request;
}

std::vector<SweepRequest> requests_of_queue(const std::string& path) {
  std::vector<SweepRequest> requests;
  std::istringstream lines(read_file(path));
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line.resize(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    requests.push_back(request_of_line(line, path + ": line " + std::to_string(number)));
  }
  check(!requests.empty(), path, ": names no recipe");
  return requests;
}

// Costs do not depend on the seed.
std::string text_without_seed(Config config) {
  config.set("seed", 0);
  return config.to_toml();
}

// "about 2 min 05 s"; an estimate below a second is "< 1 s".
std::string estimate_text(double seconds, const std::string& about = "") {
  return seconds < 1 ? "< 1 s" : about + short_duration(seconds);
}

class Sweep : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    declare_input(command, "RECIPE", request_.recipe,
                  "a built-in recipe (kelvin list recipes) or a file")
        ->type_name("RECIPE of <recipes>");
    declare_settings(command, request_.overrides,
                     "settings of all runs; sweep.KEY=[...] replaces a list: sweep.seed=[4,5]");
    command
        .add_option("--scale", request_.scale, "smoke, laptop (default, if it has one) or paper")
        ->type_name("NAME of smoke|laptop|paper");
    command
        .add_option("--output", output_,
                    "folder of the runs (default: runs/RECIPE-SCALE); with --queue, the folder "
                    "that holds one of these per line (default: runs)")
        ->type_name("DIR");
    command
        .add_option("--jobs", jobs_, "runs at once (default: one per core, 2 GiB of memory each)")
        ->type_name("N");
    command.add_option("--shard", shard_, "only the i-th of every n runs: machines share a recipe")
        ->type_name("i/n");
    command.add_option("--only", request_.only, "only runs of this name; * stands for anything")
        ->type_name("NAMES");
    command.add_flag("--tune", request_.is_tuning,
                     "instead of the runs the trials that choose the settings of tuned cases");
    command
        .add_option("--readings", readings_,
                    "folder of kept readings: runs found there count as finished")
        ->type_name("DIR")
        ->capture_default_str();
    command.add_option("--queue", queue_, "work through a file of recipes, one per line")
        ->type_name("FILE");
    command.add_flag("--harvest", is_harvest_,
                     "keep the readings of the finished runs in --output");
    command.add_flag("--dry-run", is_dry_run_, "list the runs with what they would cost");
  }

  int run() override {
    const auto format = common().format();
    check(request_.recipe.empty() + queue_.empty() + !is_harvest_ == 2,
          "needs one of: RECIPE, --queue FILE, --harvest");
    if (is_harvest_) return run_harvest();
    read_shard(shard_, request_);
    threads_ = common().has_threads() ? common().threads() : 1;
    const auto jobs = jobs_.empty() ? default_jobs(threads_) : whole_number_of("--jobs", jobs_);
    check(jobs >= 1, "--jobs: must be at least 1, got ", jobs);

    const auto library = load_compute_library(threads_);
    KeptReadings kept(readings_);
    kept.set_resolver(resolver_of(library));
    const SweepPlaces places{.library = library,
                             .kept = kept,
                             .data_folder = common().data_folder(),
                             .output = output_,
                             .is_output_of_one = queue_.empty() && !output_.empty()};
    auto sweeps = planned(places);
    place_runs(sweeps);
    if (is_dry_run_) return print_costs(sweeps, places, jobs, format);
    if (!queue_.empty()) ::setpriority(PRIO_PROCESS, 0, kNiceness);
    return run_all(sweeps, places, jobs, format);
  }

 protected:
  std::string threads_help() const override { return "threads of each run (default: 1)"; }

 private:
  // All of them, before the first is run.
  std::vector<PlannedSweep> planned(const SweepPlaces& places) const {
    if (queue_.empty()) return {plan_sweep(request_, places)};
    check(request_.overrides.empty() && request_.scale.empty() && request_.only.empty() &&
              !request_.is_tuning,
          "--queue: settings, --scale, --tune and --only stand in the lines of the file");
    std::vector<PlannedSweep> sweeps;
    for (auto request : requests_of_queue(queue_)) {
      request.shard = request_.shard;
      request.shards = request_.shards;
      sweeps.push_back(plan_sweep(request, places));
    }
    return sweeps;
  }

  int run_all(std::vector<PlannedSweep>& sweeps, const SweepPlaces& places, int64_t jobs,
              TableFormat format) {
    std::vector<std::string> failures;
    bool has_internal_error = false;
    for (auto& sweep : sweeps) {
      if (!sweep.undecided.empty()) {
        // An earlier line of a queue may have told.
        sweep = plan_sweep(sweep.request, places);
        place_runs(sweeps);
      }
      tell_of_undecided(sweep);
      if (sweep.selected.empty()) continue;
      if (!common().is_quiet()) {
        print_remark(sweep.recipe.title);
        const auto runs = static_cast<int64_t>(sweep.chosen.size());
        print_for_people(fmt::format("{} runs in {}, {} at once\n", runs, sweep.root.string(),
                                     std::min(jobs, runs)));
      }
      const auto result = run_sweep(sweep, places.kept,
                                    {.data_folder = common().data_folder(),
                                     .jobs = jobs,
                                     .threads = threads_,
                                     .is_quiet = common().is_quiet()});
      fmt::print("{}\n", summary_of(sweep, result));
      if (sweep.request.is_tuning) {
        print_table(tuning_table(plan_sweep(sweep.request, places).tunings, format), format);
      }
      std::fflush(stdout);
      failures.insert(failures.end(), result.failures.begin(), result.failures.end());
      has_internal_error |= result.has_internal_error;
      if (result.was_interrupted) {
        print_for_people("kelvin sweep: stopped; the same command goes on with it\n");
        return interrupt_exit_code();
      }
    }
    for (const auto& failure : failures) {
      print_for_people(fmt::format("kelvin sweep: failed: {}\n", failure));
    }
    if (failures.empty()) return kSuccess;
    return has_internal_error ? kInternalError : kUserError;
  }

  static void tell_of_undecided(const PlannedSweep& sweep) {
    const auto text = undecided_text(sweep);
    if (!text.empty()) print_for_people(text + "\n");
  }

  static std::string summary_of(const PlannedSweep& sweep, const SweepResult& result) {
    auto text = fmt::format("{}: {} {}, {} done before, {} now", sweep_folder(sweep),
                            sweep.chosen.size(), sweep.request.is_tuning ? "trials" : "runs",
                            result.done_before, result.finished);
    if (result.shared > 0) text += fmt::format(", {} shared with earlier ones", result.shared);
    if (result.elsewhere > 0) {
      text += fmt::format(", {} left to other processes", result.elsewhere);
    }
    if (!result.failures.empty()) text += fmt::format(", {} failed", result.failures.size());
    return text;
  }

  int print_costs(const std::vector<PlannedSweep>& sweeps, const SweepPlaces& places, int64_t jobs,
                  TableFormat format) const {
    ProgressBar bar(common().is_quiet());
    auto context = run_context(bar);
    context.data_folder = common().data_folder();
    std::map<std::string, Json> costs;
    Table table{.columns = {{"recipe"},
                            {"run"},
                            {"state"},
                            {is_for_people(format) ? "time" : "minutes", Alignment::right},
                            {"memory", Alignment::right},
                            {"disk", Alignment::right}}};
    const auto amount = [&](const Json& plan, const char* key) {
      const auto bytes = plan.value(key, int64_t{0});
      return is_for_people(format) ? byte_text(bytes) : std::to_string(bytes);
    };
    double minutes = 0;
    std::set<fs::path> folders;
    for (const auto& sweep : sweeps) {
      tell_of_undecided(sweep);
      for (const auto place : sweep.chosen) {
        const auto& name = sweep.recipe.runs[place].name;
        const auto& folder = sweep.folders[place];
        const auto state = sweep_state(folder, sweep.resolved[place], places.kept);
        const bool is_shared = folder.parent_path() != sweep.root || !folders.insert(folder).second;
        std::vector<std::string> row = {sweep_folder(sweep), name,
                                        is_shared ? "shared" : name_of(state)};
        if (is_shared) {
          table.rows.push_back(std::move(row));
          continue;
        }
        if (state == SweepState::to_train || state == SweepState::to_resume) {
          auto& plan = costs[text_without_seed(sweep.resolved[place])];
          if (plan.is_null())
            plan = places.library.run(PlanRequest{.resolved = sweep.resolved[place]}, context);
          const auto of_run = plan.value("estimated_minutes", 0.0);
          minutes += of_run;
          row.insert(
              row.end(),
              {is_for_people(format) ? estimate_text(60 * of_run) : short_number(of_run, 3),
               amount(plan, "estimated_memory_bytes"), amount(plan, "estimated_disk_bytes")});
        }
        table.rows.push_back(std::move(row));
      }
    }
    bar.clear();
    print_table(table, format);
    if (!common().is_quiet()) {
      const auto seconds = 60 * minutes / static_cast<double>(jobs);
      print_remark(
          fmt::format("in all {} with {} run{} at once, if the machine stays as busy as now",
                      estimate_text(seconds, "about "), jobs, jobs == 1 ? "" : "s"));
    }
    return kSuccess;
  }

  int run_harvest() const {
    check(!output_.empty(), "--harvest: needs the folder of the runs: --output DIR");
    const auto result = harvest(output_, readings_);
    fmt::print("{} finished runs in {}, {} new in {}\n", result.finished, output_, result.written,
               readings_);
    return kSuccess;
  }

  SweepRequest request_;
  std::string output_;
  std::string jobs_;
  std::string shard_;
  std::string readings_ = kReadingsFolder;
  std::string queue_;
  int64_t threads_ = 1;
  bool is_harvest_ = false;
  bool is_dry_run_ = false;
};

const bool sweep_registered = verbs().add(
    "sweep", {
                 .summary = "Many runs of a recipe, several at once; goes on where it was stopped",
                 .make = [] { return std::make_unique<Sweep>(); },
             });

}  // namespace
}  // namespace kelvin
