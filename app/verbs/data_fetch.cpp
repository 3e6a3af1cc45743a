#include <fmt/format.h>

#include <chrono>

#include "app/cli/common_flags.h"
#include "app/cli/human_text.h"
#include "app/cli/interrupts.h"
#include "app/cli/progress_bar.h"
#include "app/cli/terminal.h"
#include "app/verbs/data.h"
#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/sources/fetch.h"

namespace kelvin {
namespace {

std::string megabytes(double bytes) { return fmt::format("{:.1f}", bytes / 1e6); }

// Turns progress into what the bar shows, with the speed since the file was begun.
class DownloadProgress {
 public:
  explicit DownloadProgress(ProgressBar& bar) : bar_(bar) {}

  void show(const FetchProgress& progress) {
    const bool is_download = progress.step == FetchStep::downloading;
    const auto label = (is_download ? "download " : "unpack ") + progress.file_name;
    const auto now = std::chrono::steady_clock::now();
    if (label != label_) {
      label_ = label;
      begun_ = now;
      bytes_at_begin_ = progress.done;
    }
    const double seconds = std::chrono::duration<double>(now - begun_).count();
    const auto gained = static_cast<double>(progress.done - bytes_at_begin_);
    Activity activity{.label = label};
    if (is_download) {
      activity.done = static_cast<double>(progress.done);
      activity.total = static_cast<double>(progress.total);
      if (seconds > 0.5) activity.rate = megabytes(gained / seconds) + " MB/s";
    }
    bar_.show(activity);
  }

 private:
  ProgressBar& bar_;
  std::string label_;
  std::chrono::steady_clock::time_point begun_ = {};
  int64_t bytes_at_begin_ = 0;
};

std::vector<std::string> row_of(const std::string& name, const FetchReport& report) {
  if (report.outcome == FetchOutcome::already_there) {
    return {name, "already there", report.folder.string()};
  }
  return {name, "fetched", report.folder.string(), megabytes(static_cast<double>(report.bytes)),
          join(report.addresses, " ")};
}

class FetchData : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    command.add_option("NAME", names_, "datasets; see kelvin data list")
        ->type_name("NAME of <datasets>")
        ->required();
    command
        .add_option("--mirror", mirror_,
                    "address of a folder with the same files, tried before the known ones")
        ->type_name("URL");
    command.add_flag("--force", is_forced_, "replace a folder even if it holds other files, too");
  }

  int run() override {
    const auto format = common().format();
    const auto data_folder = common().data_folder();
    for (const auto& name : names_) {  // none is fetched if one is misspelt
      if (!is_embedded(name)) known_dataset(name);
    }
    catch_interrupts(SecondInterrupt::exits);
    Table table{.columns = {{"name"}, {"state"}, {"folder"}, {"MB", Alignment::right}, {"from"}}};
    int code = kSuccess;
    bool is_stopped = false;
    for (const auto& name : names_) {
      if (is_embedded(name)) {
        table.rows.push_back({name, "embedded; nothing to fetch"});
        continue;
      }
      try {
        const auto report = fetch_one(name, data_folder);
        is_stopped = report.outcome == FetchOutcome::stopped;
        if (is_stopped) break;
        table.rows.push_back(row_of(name, report));
      } catch (const Error& error) {
        print_for_people(fmt::format("kelvin data fetch: {}\n", shown_line(error.what())));
        code = kUserError;
      }
    }
    if (!table.rows.empty()) print_table(table, format);
    if (!is_stopped) return code;
    print_for_people(fmt::format(
        "kelvin data fetch: stopped; {} keeps what came, the same command goes on with it\n",
        (data_folder / ".partial").string()));
    return interrupt_exit_code();
  }

 private:
  FetchReport fetch_one(const std::string& name, const std::filesystem::path& data_folder) const {
    ProgressBar bar(common().is_quiet());
    DownloadProgress progress(bar);
    return fetch(known_dataset(name), data_folder,
                 {.extra_mirror = mirror_,
                  .force = is_forced_,
                  .progress = [&](const FetchProgress& now) { progress.show(now); },
                  .notice = [&](const std::string& line) { bar.say(line); },
                  .should_stop = [] { return interrupts() > 0; }});
  }

  std::vector<std::string> names_;
  std::string mirror_;
  bool is_forced_ = false;
};

const bool data_fetch_registered =
    data_subcommands().add("fetch", {
                                        .summary = "Download datasets and check them",
                                        .make = [] { return std::make_unique<FetchData>(); },
                                    });

}  // namespace
}  // namespace kelvin
