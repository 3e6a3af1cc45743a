#include <fmt/format.h>

#include <chrono>

#include "app/cli/common_flags.h"
#include "app/cli/human_text.h"
#include "app/cli/interrupts.h"
#include "app/cli/output_file.h"
#include "app/cli/recipe_runs.h"
#include "app/cli/report_input.h"
#include "app/cli/terminal.h"
#include "app/cli/verb.h"
#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/report/tables/comparison.h"
#include "kelvin/report/tables/verdict.h"
#include "kelvin/runs/recipe.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kPage = "report.html";

class Demo : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    command.add_option("--output", output_, "folder for the runs and the report (runs/RECIPE)")
        ->type_name("DIR");
    command.add_option("--jobs", jobs_, "runs at once (default: as many as threads)")
        ->type_name("N");
    command.add_option("--recipe", recipe_, "which comparison: " + join(demo_recipes(), ", "))
        ->type_name("NAME of " + join(demo_recipes(), "|"))
        ->capture_default_str();
    command.add_option("--scale", scale_, "a scale of the recipe, for example smoke")
        ->type_name("NAME of smoke|laptop|paper");
  }

  int run() override {
    const auto started = Clock::now();
    const auto format = common().format();
    const auto threads = common().threads();
    const auto jobs = jobs_.empty() ? threads : whole_number_of("--jobs", jobs_);
    check(jobs >= 1, "--jobs: must be at least 1, got ", jobs);
    const auto text = recipe_text();
    if (output_.empty()) output_ = "runs/" + recipe_ + (scale_.empty() ? "" : "-" + scale_);
    const auto recipe = parse_recipe(text, recipe_, scale_);
    check_replaceable(fs::path(output_) / kPage, kMarkOfPage);
    make_room();

    if (!common().is_quiet()) print_remark(recipe.title);
    say(fmt::format("{} runs in {}", recipe.runs.size(), output_));
    const auto result = run_recipe(recipe, text, output_,
                                   {.jobs = jobs,
                                    .label = "demo",
                                    .is_quiet = common().is_quiet(),
                                    .threads = threads,
                                    .data_folder = common().data_folder()});
    if (result.was_interrupted) {
      print_for_people(fmt::format("kelvin demo: stopped; {} holds what was done\n", output_));
      return interrupt_exit_code();
    }
    if (!result.finished.empty()) {
      print_result(format, std::chrono::duration<double>(Clock::now() - started).count());
    }
    return exit_code_of(result, recipe.runs.size());
  }

 protected:
  std::string threads_help() const override {
    return "threads of all runs together (default: $OMP_NUM_THREADS, else all cores)";
  }

 private:
  std::string recipe_text() const {
    const auto& recipes = builtin_recipes();
    const bool is_of_paper = recipes.contains(recipe_) && !is_demo_recipe(recipe_);
    check(!is_of_paper, "--recipe: must be ", join(demo_recipes(), ", "), "; '", recipe_,
          "' is for 'kelvin reproduce ", recipe_, "'");
    check(is_demo_recipe(recipe_), "--recipe: no recipe named '", recipe_,
          "'; there are: ", join(demo_recipes(), ", "));
    return recipes.at(recipe_);
  }

  // A second demo takes the place of the first; what is not of a demo stays.
  void make_room() const {
    check_no_other_runs(output_);
    if (!holds_recipe_runs(output_)) return;
    say("replacing the earlier demo in " + output_);
    remove_recipe_runs(output_);
  }

  void say(const std::string& line) const {
    if (!common().is_quiet()) print_for_people(fmt::format("{}\n", line));
  }

  void print_result(TableFormat format, double seconds) const {
    const auto page = fs::path(output_) / kPage;
    const auto input = page_input({output_});
    write_page(input, page);
    const auto comparison = compare(input.runs);
    if (format != TableFormat::text) {
      print_table(comparison_records(comparison), format);
      return;
    }
    print_table(comparison_table(comparison), format);
    fmt::print("\n");
    for (const auto& verdict : verdicts(input.runs, input.claims)) {
      print_paragraph(verdict.statement + ": " + verdict.sentence);
    }
    fmt::print("\ntook {}\nreport: {}\n", short_duration(seconds), page.string());
  }

  static int exit_code_of(const RecipeRunsResult& result, size_t planned) {
    if (result.failures.empty()) return kSuccess;
    print_for_people(fmt::format("kelvin demo: {} of {} runs failed; the first: {}\n",
                                 result.failures.size(), planned, result.failures.front()));
    return result.has_internal_error ? kInternalError : kUserError;
  }

  std::string output_;
  std::string jobs_;
  std::string recipe_ = "demo";
  std::string scale_;
};

const bool demo_registered = verbs().add(
    "demo", {
                .summary = "Two temperatures on built-in data: table and report in a few minutes",
                .make = [] { return std::make_unique<Demo>(); },
            });

}  // namespace
}  // namespace kelvin
