#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/config_flags.h"
#include "app/cli/config_paths.h"
#include "app/cli/human_text.h"
#include "app/cli/interrupts.h"
#include "app/cli/metadata.h"
#include "app/cli/run_context.h"
#include "app/cli/run_result.h"
#include "app/cli/terminal.h"
#include "app/cli/verb.h"
#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/experiment/run/run.h"
#include "kelvin/experiment/tasks/plan.h"
#include "kelvin/report/tables/run_values.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

Json json_of_plan(const Config& config, const Json& plan) {
  Json document;
  for (const auto& [key, value] : config.values()) document["config"][key] = value;
  document["plan"] = plan;
  return document;
}

// Estimates: more digits than these would be noise.
std::string about_minutes(double minutes) {
  if (minutes < 1) return fmt::format("about {} s", short_number(std::ceil(60 * minutes), 2));
  if (minutes < 90) return fmt::format("about {:.0f} min", minutes);
  return fmt::format("about {} h", short_number(minutes / 60, minutes < 600 ? 2 : 3));
}

// "estimated training time" and "about 12 min" of {"estimated_training_minutes": 12.3}
std::pair<std::string, std::string> line_of_plan(std::string key, const Json& value) {
  constexpr std::string_view kMinutes = "_minutes";
  constexpr std::string_view kBytes = "_bytes";
  auto text = value.is_string() ? value.get<std::string>() : json_text(value);
  if (value.is_number_float()) text = short_number(value.get<double>());
  if (key.ends_with(kMinutes)) {
    key.replace(key.size() - kMinutes.size(), kMinutes.size(), "_time");
    text = about_minutes(value.get<double>());
  } else if (key.ends_with(kBytes)) {
    key.resize(key.size() - kBytes.size());
    text = "about " + byte_text(value.get<int64_t>());
  }
  std::replace(key.begin(), key.end(), '_', ' ');
  return {key, text};
}

// The costs are comments, so that the whole can be saved and used as a config.
std::string toml_of_plan(const Config& config, const Json& plan) {
  auto text = config.to_toml() + "\n";
  for (const auto& [key, value] : plan.items()) {
    const auto [name, figure] = line_of_plan(key, value);
    text += fmt::format("# {}: {}\n", name, figure);
  }
  return text;
}

Table table_of_plan(const Config& config, const Json& plan) {
  Table table{.columns = {{"name"}, {"value"}}};
  for (const auto& [key, value] : config.values()) table.rows.push_back({key, value_text(value)});
  for (const auto& [key, value] : plan.items()) table.rows.push_back({key, value_text(value)});
  return table;
}

class Train : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    config_.declare(command, kForTrain);
    command.add_option("--output", output_, "folder for the run; must not hold one yet")
        ->type_name("DIR");
    command.add_flag("--dry-run", is_dry_run_, "print the whole config and what it would cost");
  }

  int run() override {
    const auto format = common().format();
    const auto threads = common().threads();
    const auto data_folder = common().data_folder();
    auto config = config_.config();
    make_paths_absolute(config, data_folder);
    check(is_dry_run_ || !output_.empty(), "--output: required unless --dry-run");
    // Loading the library takes a while: whatever can be refused before is refused before.
    if (!output_.empty()) check_can_create_run(output_);

    const auto library = load_compute_library(threads);
    const auto resolved = library.run(ResolveRequest{.config = config});
    ProgressBar bar(common().is_quiet());
    auto context = run_context(bar);
    context.data_folder = data_folder;
    if (is_dry_run_) {
      const auto plan = library.run(PlanRequest{.resolved = resolved}, context);
      bar.clear();
      print_plan(resolved, plan, format);
      return kSuccess;
    }
    catch_interrupts(SecondInterrupt::exits);
    library.run(TrainRequest{.resolved = resolved,
                             .output = output_,
                             .metadata = run_metadata(library.run(VersionsRequest{}))},
                context);
    bar.clear();
    return print_run_result("train", output_, format);
  }

 private:
  static void print_plan(const Config& config, const Json& plan, TableFormat format) {
    if (format == TableFormat::json || format == TableFormat::jsonl) {
      fmt::print("{}\n",
                 json_text(json_of_plan(config, plan), format == TableFormat::json ? 1 : -1));
    } else if (format == TableFormat::text) {
      fmt::print("{}", toml_of_plan(config, plan));
    } else {
      print_table(table_of_plan(config, plan), format);
    }
  }

  ConfigFlags config_;
  std::string output_;
  bool is_dry_run_ = false;
};

const bool train_registered =
    verbs().add("train", {
                             .summary = "Train one network and measure it: a run folder",
                             .make = [] { return std::make_unique<Train>(); },
                         });

}  // namespace
}  // namespace kelvin
