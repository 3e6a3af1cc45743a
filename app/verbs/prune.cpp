#include "kelvin/runs/prune.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "app/cli/common_flags.h"
#include "app/cli/human_text.h"
#include "app/cli/terminal.h"
#include "app/cli/verb.h"
#include "kelvin/core/text.h"
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
  }

  int run() override {
    const auto format = common().format();
    is_for_people_ = is_for_people(format);
    Table table{.columns = {{"run"},
                            {"removed", Alignment::right},
                            {is_for_people_ ? "size" : "bytes", Alignment::right}}};
    if (options_.dry_run) table.columns[1] = {"would remove"};
    table.columns.push_back({"note"});
    int code = kSuccess;
    const auto folders = find_runs(folder_, warn_people);
    for (const auto& folder : folders) {
      // A link to a run leads out of what we were asked to look at.
      if (folder != fs::path(folder_) && fs::is_symlink(folder)) continue;
      const auto name = name_below(folder_, folder);
      try {
        append_rows(name, folder, table);
      } catch (const std::runtime_error& error) {  // an Error, or what the file system says
        // One run that cannot be pruned must not keep the others.
        table.rows.push_back({name, "", "", "failed"});
        print_for_people(fmt::format("kelvin prune: {}\n", shown_line(error.what())));
        code = kUserError;
      }
    }
    if (table.rows.empty() && !common().is_quiet()) {
      print_for_people(fmt::format("{}: {}\n", folder_,
                                   folders.empty() ? "holds no runs" : "nothing to remove"));
    }
    if (!table.rows.empty() || format != TableFormat::text) print_table(table, format);
    return code;
  }

 private:
  std::string size_text(int64_t bytes) const {
    return is_for_people_ ? byte_text(bytes) : std::to_string(bytes);
  }

  void append_rows(const std::string& name, const fs::path& folder, Table& table) const {
    const auto pruned = prune_run(folder, options_);
    if (!options_.dry_run) {
      table.rows.push_back(
          {name, std::to_string(pruned.removed.size()), size_text(pruned.bytes()), pruned.note});
      return;
    }
    for (const auto& entry : pruned.removed) {
      table.rows.push_back(
          {name, entry.path.lexically_relative(folder).string(), size_text(entry.bytes)});
    }
    const bool has_note = !pruned.note.empty();
    if (has_note) table.rows.push_back({name, "", "", pruned.note});
  }

  std::string folder_;
  PruneOptions options_;
  bool is_for_people_ = true;
};

const bool prune_registered = verbs().add(
    "prune", {
                 .summary = "Removes what the results of runs do not need: old checkpoints, parts",
                 .make = [] { return std::make_unique<Prune>(); },
             });

}  // namespace
}  // namespace kelvin
