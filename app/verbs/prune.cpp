#include "kelvin/runs/prune.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "app/exit_code.h"
#include "app/format_flag.h"
#include "app/human_text.h"
#include "app/run_name.h"
#include "app/verb.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

class Prune : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    command.add_option("DIR", folder_, "where to look for runs, at any depth")
        ->type_name("")
        ->required();
    command.add_flag("--dry-run", options_.dry_run, "list what would go, and remove nothing");
    command.add_flag("--training-state", options_.training_state,
                     "also what only going on with a run needs, if it is finished");
    format_.declare(command);
  }

  int run() override {
    const auto format = format_.format();
    Table table{.columns = {{"run"}, {"removed", Alignment::right}, {"bytes", Alignment::right}}};
    if (options_.dry_run) table.columns[1] = {"would remove"};
    table.columns.push_back({"note"});
    int code = kSuccess;
    for (const auto& folder : find_runs(folder_, warn_people)) {
      // A link to a run leads out of what we were asked to look at.
      if (folder != fs::path(folder_) && fs::is_symlink(folder)) continue;
      const auto name = name_below(folder_, folder);
      try {
        append_rows(name, folder, table);
      } catch (const std::runtime_error& error) {  // an Error, or what the file system says
        // One run that cannot be pruned must not keep the others.
        table.rows.push_back({name, "", "", "failed"});
        print_for_people(fmt::format("kelvin prune: {}\n", error.what()));
        code = kUserError;
      }
    }
    fmt::print("{}", render(table, format));
    return code;
  }

 private:
  void append_rows(const std::string& name, const fs::path& folder, Table& table) const {
    const auto pruned = prune_run(folder, options_);
    if (!options_.dry_run) {
      table.rows.push_back({name, std::to_string(pruned.removed.size()),
                            std::to_string(pruned.bytes()), pruned.note});
      return;
    }
    for (const auto& entry : pruned.removed) {
      table.rows.push_back(
          {name, entry.path.lexically_relative(folder).string(), std::to_string(entry.bytes)});
    }
    const bool has_note = !pruned.note.empty();
    if (has_note) table.rows.push_back({name, "", "", pruned.note});
  }

  std::string folder_;
  PruneOptions options_;
  FormatFlag format_;
};

const bool registered = verbs().add(
    "prune", {
                 .summary = "Removes what the results of runs do not need: old checkpoints, parts",
                 .make = [] { return std::make_unique<Prune>(); },
             });

}  // namespace
}  // namespace kelvin
