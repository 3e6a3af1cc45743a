#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/human_text.h"
#include "app/cli/interrupts.h"
#include "app/cli/output_file.h"
#include "app/cli/recipe_runs.h"
#include "app/cli/report_input.h"
#include "app/cli/setting_words.h"
#include "app/cli/sweep_runs.h"
#include "app/cli/terminal.h"
#include "app/cli/verb.h"
#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/report/tables/reproduction.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

constexpr auto kAll = "all";
constexpr auto kDefaultScaleOfAll = "laptop";
constexpr auto kReproductionPage = "report.html";

// "mlp,seed=1,temperature=30" as the name of its group: "mlp,seed=*,temperature=30".
std::string without_seed(const std::string& name) {
  auto parts = split(name, ',');
  for (auto& part : parts) {
    if (part.starts_with("seed=")) part = "seed=*";
  }
  return join(parts, ",");
}

class Reproduce : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    declare_input(command, "NAME", name_,
                  "a recipe of a paper (kelvin list recipes), or all that have the scale")
        ->type_name("NAME of all|<recipes>")
        ->required();
    declare_settings(command, overrides_, "settings of all runs, as for sweep");
    command.add_option("--scale", scale_, "smoke, laptop (default, if it has one) or paper")
        ->type_name("NAME of smoke|laptop|paper");
    command
        .add_option("--output", output_,
                    "folder of the runs (default: runs/RECIPE-SCALE); for all, the folder that "
                    "holds one of these per recipe (default: runs)")
        ->type_name("DIR");
    command.add_option("--readings", readings_, "folder of kept readings")
        ->type_name("DIR")
        ->capture_default_str();
    command.add_option("--jobs", jobs_, "runs at once, as for sweep")->type_name("N");
    command.add_flag("--no-train", is_training_refused_, "show what there is; train nothing");
  }

  int run() override {
    const auto format = common().format();
    threads_ = common().has_threads() ? common().threads() : 1;
    jobs_at_once_ = jobs_.empty() ? default_jobs(threads_) : whole_number_of("--jobs", jobs_);
    check(jobs_at_once_ >= 1, "--jobs: must be at least 1, got ", jobs_at_once_);
    const auto names = recipe_names();
    const auto library = load_compute_library(threads_);
    KeptReadings kept(readings_);
    kept.set_resolver(resolver_of(library));
    const SweepPlaces places{.library = library,
                             .kept = kept,
                             .data_folder = common().data_folder(),
                             .output = output_,
                             .is_output_of_one = name_ != kAll && !output_.empty()};
    std::vector<PlannedSweep> sweeps;
    sweeps.reserve(names.size());
    for (const auto& name : names) {
      sweeps.push_back(
          plan_sweep({.recipe = name, .scale = scale_, .overrides = overrides_}, places));
    }
    place_runs(sweeps);
    int code = kSuccess;
    Table records;
    for (const auto& sweep : sweeps) {
      const int of_sweep = train_missing(sweep, kept);
      if (interrupts() > 0) return interrupt_exit_code();
      code = std::max(code, of_sweep);
      show(sweep, kept, format, records);
    }
    if (!is_for_people(format)) print_table(records, format);
    return code;
  }

 protected:
  std::string threads_help() const override { return "threads of each run (default: 1)"; }

 private:
  std::vector<std::string> recipe_names() const {
    if (name_ != kAll) {
      check_recipe();
      return {name_};
    }
    const auto scale = scale_.empty() ? std::string(kDefaultScaleOfAll) : scale_;
    std::vector<std::string> names;
    for (const auto& [name, text] : builtin_recipes()) {
      const auto scales = parse_recipe(text, name, "").scales;
      if (std::find(scales.begin(), scales.end(), scale) != scales.end()) names.push_back(name);
    }
    check(!names.empty(), "--scale: no recipe has the scale '", scale, "'");
    return names;
  }

  // Those of papers are offered; a demo that is asked for is as good as a file.
  void check_recipe() const {
    if (builtin_recipes().contains(name_) || fs::is_regular_file(name_)) return;
    std::vector<std::string> names;
    for (const auto& [name, text] : builtin_recipes()) {
      if (!is_demo_recipe(name)) names.push_back(name);
    }
    check(false, "no recipe named '", name_,
          "', nor a file of that name; there are: ", join(names, ", "));
  }

  int train_missing(const PlannedSweep& sweep, const KeptReadings& kept) const {
    const bool is_complete =
        std::all_of(sweep.chosen.begin(), sweep.chosen.end(),
                    [&](size_t place) { return kept.find(sweep.resolved[place]).has_value(); });
    if (is_training_refused_ || is_complete) return kSuccess;
    const auto result = run_sweep(sweep, kept,
                                  {.data_folder = common().data_folder(),
                                   .jobs = jobs_at_once_,
                                   .threads = threads_,
                                   .is_quiet = common().is_quiet()});
    for (const auto& failure : result.failures) {
      print_for_people(fmt::format("kelvin reproduce: failed: {}\n", failure));
    }
    if (result.was_interrupted) {
      print_for_people("kelvin reproduce: stopped; the same command goes on with it\n");
    }
    if (result.failures.empty()) return kSuccess;
    return result.has_internal_error ? kInternalError : kUserError;
  }

  // What was chosen for the run; empty if it is strict.
  static std::string tuned_key(const PlannedSweep& sweep, const PlannedRun& planned) {
    for (const auto& [tuning, results, best] : sweep.tunings) {
      if (tuning.name == planned.tuning) return tuning.key;
    }
    return "";
  }

  // The runs there are, by case in the order of the recipe.
  std::vector<ReproducedCase> gathered(const PlannedSweep& sweep, const KeptReadings& kept) const {
    std::vector<ReproducedCase> cases;
    for (const auto place : sweep.chosen) {
      const auto& planned = sweep.recipe.runs[place];
      if (cases.empty() || cases.back().name != planned.case_name) {
        cases.push_back({.name = planned.case_name});
        cases.back().tuned_key = tuned_key(sweep, planned);
      }
      auto& current = cases.back();
      const auto file = kept.find(sweep.resolved[place]);
      const auto& folder = sweep.folders[place];
      const bool is_there =
          file || sweep_state(folder, sweep.resolved[place], kept) == SweepState::is_finished;
      if (!is_there) {
        ++current.missing;
        continue;
      }
      current.runs.push_back(file ? load_kept(*file) : load_run(folder));
      current.commands.push_back(sweep_command(sweep, without_seed(planned.name)));
    }
    return cases;
  }

  void show(const PlannedSweep& sweep, const KeptReadings& kept, TableFormat format,
            Table& records) const {
    const auto cases = gathered(sweep, kept);
    const auto& numbers = expected_numbers();
    const auto found = numbers.find(sweep.name);
    const auto expected = found == numbers.end()
                              ? std::vector<ExpectedNumber>{}
                              : parse_expected(found->second, sweep.name + ".csv");
    const auto reproduced = reproduction(cases, sweep.recipe.claims, expected);
    int64_t missing = 0;
    for (const auto& each : cases) missing += each.missing;
    if (missing > 0) {
      // The command stays in one piece, to be copied.
      print_for_people(fmt::format("{}: {} of {} runs are missing; they are made by:\n  {}\n",
                                   sweep.name, missing, sweep.chosen.size(), sweep_command(sweep)));
    }
    const auto undecided = undecided_text(sweep);
    if (!undecided.empty()) print_for_people(undecided + "\n");
    if (!is_for_people(format)) {
      const auto of_sweep = reproduction_records(sweep.name, sweep.request.scale, reproduced);
      records.columns = of_sweep.columns;
      records.rows.insert(records.rows.end(), of_sweep.rows.begin(), of_sweep.rows.end());
      return;
    }
    const auto title =
        fmt::format("{} ({})", sweep.recipe.title,
                    sweep.request.scale.empty() ? "as it stands" : sweep.request.scale);
    if (format == TableFormat::markdown) {
      fmt::print("## {}\n", title);
    } else {
      print_paragraph(title);
    }
    fmt::print("\n");
    for (const auto& each : reproduced) print_case(each, format);
    write_page_of(sweep, cases);
  }

  static void print_case(const CaseReproduction& each, TableFormat format) {
    print_table(reproduction_table(each), format);
    fmt::print("\n");
    if (!each.verdicts.empty()) {
      print_table(finding_table(each), format);
      fmt::print("\n");
    }
    print_table(command_table(each), format);
    fmt::print("\n");
  }

  // Beside the runs; what comes from kept readings alone has no folder.
  void write_page_of(const PlannedSweep& sweep, const std::vector<ReproducedCase>& cases) const {
    const auto& root = sweep.root;
    PageInput input{.title = sweep.recipe.title};
    input.claims = sweep.recipe.claims;
    input.command = sweep_command(sweep);
    // A run that is strict and tuned at once is shown once.
    std::set<fs::path> seen;
    for (const auto& each : cases) {
      for (const auto& run : each.runs) {
        if (!seen.insert(run.path).second) continue;
        input.runs.push_back(run);
        input.cases.push_back(each.name);
      }
    }
    if (!fs::is_directory(root) || input.runs.empty()) return;
    check_replaceable(root / kReproductionPage, kMarkOfPage);
    write_page(input, root / kReproductionPage);
    fmt::print("report: {}\n\n", (root / kReproductionPage).string());
  }

  std::string name_;
  std::vector<std::string> overrides_;
  std::string scale_;
  std::string output_;
  std::string readings_ = kReadingsFolder;
  std::string jobs_;
  bool is_training_refused_ = false;
  int64_t threads_ = 1;
  int64_t jobs_at_once_ = 1;
};

const bool reproduce_registered = verbs().add(
    "reproduce", {
                     .summary = "A table of a paper: its numbers beside ours, a verdict per claim",
                     .make = [] { return std::make_unique<Reproduce>(); },
                 });

}  // namespace
}  // namespace kelvin
