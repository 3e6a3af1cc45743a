#include <fmt/format.h>

#include "app/compute_library.h"
#include "app/config_flags.h"
#include "app/config_paths.h"
#include "app/data_folder.h"
#include "app/exit_code.h"
#include "app/format_flag.h"
#include "app/interrupts.h"
#include "app/json_text.h"
#include "app/metadata.h"
#include "app/run_context.h"
#include "app/run_result.h"
#include "app/threads_flag.h"
#include "app/verb.h"
#include "kelvin/core/check.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

std::string json_of_plan(const Config& config, const Json& plan) {
  Json document;
  for (const auto& [key, value] : config.values()) document["config"][key] = value;
  document["plan"] = plan;
  return json_text(document, 1) + "\n";
}

// The costs are comments, so that the whole can be saved and used as a config.
std::string toml_of_plan(const Config& config, const Json& plan) {
  auto text = config.to_toml() + "\n";
  for (const auto& [key, value] : plan.items()) {
    text += fmt::format("# {}: {}\n", key,
                        value.is_string() ? value.get<std::string>() : json_text(value));
  }
  return text;
}

class Train : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    config_.declare(command);
    command.add_option("--output", output_, "folder for the run; must not hold one yet")
        ->type_name("DIR");
    command.add_flag("--dry-run", is_dry_run_, "print the whole config and what it would cost");
    command.add_flag("-q,--quiet", is_quiet_, "no progress");
    data_folder_.declare(command);
    threads_.declare(command);
    format_.declare(command);
  }

  int run() override {
    const auto format = format_.format();
    const auto threads = threads_.threads();
    const auto data_folder = data_folder_.folder();
    auto config = config_.config();
    make_paths_absolute(config, data_folder);
    check(is_dry_run_ || !output_.empty(), "--output: required unless --dry-run");
    // Loading the library takes a while: whatever can be refused before is refused before.
    if (!output_.empty()) check_can_create_run(output_);

    const auto& api = load_compute_library(threads);
    const auto resolved = api.resolve(config);
    ProgressBar bar(is_quiet_);
    auto context = run_context(bar);
    context.data_folder = data_folder;
    if (is_dry_run_) {
      check(format != TableFormat::csv && format != TableFormat::markdown,
            "-o: with --dry-run must be text, json or jsonl");
      const auto plan = api.plan(resolved, context);
      fmt::print("{}", format == TableFormat::json || format == TableFormat::jsonl
                           ? json_of_plan(resolved, plan)
                           : toml_of_plan(resolved, plan));
      return kSuccess;
    }
    catch_interrupts(SecondInterrupt::exits);
    api.train(resolved, output_, run_metadata(api.versions()), context);
    bar.clear();
    return print_run_result("train", output_, format);
  }

 private:
  ConfigFlags config_;
  DataFolderFlag data_folder_;
  ThreadsFlag threads_;
  FormatFlag format_;
  std::string output_;
  bool is_dry_run_ = false;
  bool is_quiet_ = false;
};

const bool registered =
    verbs().add("train", {
                             .summary = "Train one network and measure it: a run folder",
                             .make = [] { return std::make_unique<Train>(); },
                         });

}  // namespace
}  // namespace kelvin
