#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/cli/common_flags.h"
#include "app/cli/human_text.h"
#include "app/cli/terminal.h"
#include "app/cli/verb.h"
#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/report/tables/run_values.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

std::string setting(const Run& run, const std::string& key) {
  return run.config.has(key) ? value_text(run.config.at(key)) : "";
}

std::string observed(const Run& run, const Quantity& quantity) {
  const auto seen = observation(run, quantity);
  return seen ? short_number(seen->value) : "";
}

// "3/20": the newest line of the metrics that tells its epoch, of the config's number.
std::string epochs_of(const Run& run) {
  double done = 0;
  for (const auto& line : run.metrics) {
    const double epoch = metric(line, "epoch");
    if (!std::isnan(epoch)) done = epoch;
  }
  return short_number(done) + "/" + setting(run, "train.epochs");
}

// The status, or "killed" if the run says that it is running and nobody is at work in it.
std::string status_text(const Run& run) {
  const bool may_be_killed = run.status == RunStatus::running && !is_locked(run.path);
  if (!may_be_killed) return name_of(run.status);
  // Asked again: it may have finished, and given its lock back, since it was loaded.
  const auto status = load_status(run.path);
  return status == RunStatus::running ? "killed" : name_of(status);
}

std::vector<std::string> row_of(const std::string& name, const Run& run) {
  const double temperature = temperature_of(run);
  return {name,
          status_text(run),
          setting(run, "model.name"),
          setting(run, "data.name"),
          std::isnan(temperature) ? "" : short_number(temperature),
          std::to_string(seed_of(run)),
          epochs_of(run),
          observed(run, {.name = "accuracy", .split = "test"}),
          observed(run, {.name = "solution_rank", .split = "test"})};
}

// The settings that the run went on with other values of than it started with.
std::string changed_keys(const Run& run) {
  std::vector<std::string> keys;
  for (const auto& change : changes_of(run)) {
    if (std::find(keys.begin(), keys.end(), change.key) == keys.end()) keys.push_back(change.key);
  }
  return join(keys, ", ");
}

// A column of its own only where there is something to say.
void append_changed(const std::vector<std::string>& changed, Table& table) {
  const bool is_any = std::any_of(changed.begin(), changed.end(),
                                  [](const std::string& keys) { return !keys.empty(); });
  if (!is_any) return;
  const auto column = table.columns.size();
  table.columns.push_back({"changed on resume"});
  for (size_t i = 0; i < table.rows.size(); ++i) {
    table.rows[i].resize(column);
    table.rows[i].push_back(changed[i]);
  }
}

class Runs : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    command.add_option("DIR", folder_, "where to look, at any depth")->type_name("")->required();
  }

  int run() override {
    const auto format = common().format();
    Table table{.columns = {{"name"},
                            {"status"},
                            {"model"},
                            {"dataset"},
                            {"T", Alignment::right},
                            {"seed", Alignment::right},
                            {"epochs", Alignment::right},
                            {"test accuracy", Alignment::right},
                            {"SR", Alignment::right}}};
    std::vector<std::string> changed;  // settings of each run
    for (const auto& folder : find_runs(folder_, warn_people)) {
      const auto name = name_below(folder_, folder);
      try {
        const auto run = load_run(folder);
        auto row = row_of(name, run);
        changed.push_back(changed_keys(run));
        table.rows.push_back(std::move(row));
      } catch (const std::runtime_error& error) {  // an Error, or what the file system says
        // One damaged folder must not hide the others.
        changed.emplace_back();
        table.rows.push_back({name, "unreadable"});
        warn_people(error.what());
      }
    }
    append_changed(changed, table);
    if (table.rows.empty() && !common().is_quiet()) {
      print_for_people(fmt::format("{}: holds no runs\n", folder_));
    }
    if (!table.rows.empty() || format != TableFormat::text) print_table(table, format);
    return kSuccess;
  }

 private:
  std::string folder_;
};

const bool runs_registered =
    verbs().add("runs", {
                            .summary = "What runs a folder holds, and their main results",
                            .make = [] { return std::make_unique<Runs>(); },
                        });

}  // namespace
}  // namespace kelvin
