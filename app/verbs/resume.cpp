#include <fmt/format.h>

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/human_text.h"
#include "app/cli/interrupts.h"
#include "app/cli/machine.h"
#include "app/cli/metadata.h"
#include "app/cli/run_context.h"
#include "app/cli/run_result.h"
#include "app/cli/verb.h"
#include "kelvin/core/check.h"
#include "kelvin/core/json_fields.h"
#include "kelvin/experiment/run/run.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

class Resume : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    command.add_option("RUN", run_, "folder of a run that was stopped or killed")
        ->type_name("")
        ->required();
    command.add_flag("--inexact", is_inexact_,
                     "also with other threads, processor or libraries than before, which round "
                     "differently, and with an edited config.toml, which is written down");
  }

  int run() override {
    const auto format = common().format();
    const auto data_folder = common().data_folder();
    const auto before = load_run(run_);
    if (before.status == RunStatus::finished) {  // what was asked for is there
      print_for_people(fmt::format("kelvin resume: {}: is finished; nothing to resume\n", run_));
      return print_run_result("resume", run_, format);
    }
    const auto library = load_compute_library(threads_for(before));
    ProgressBar bar(common().is_quiet());
    auto context = run_context(bar);
    context.data_folder = data_folder;
    catch_interrupts(SecondInterrupt::exits);
    library.run(ResumeRequest{.run = run_,
                              .metadata = run_metadata(library.run(VersionsRequest{})),
                              .is_inexact = is_inexact_},
                context);
    bar.clear();
    return print_run_result("resume", run_, format);
  }

 protected:
  std::string threads_help() const override {
    return "threads to compute with (default: as many as the run had)";
  }

 private:
  // As many as the run had, unless others are asked for.
  int64_t threads_for(const Run& before) const {
    constexpr auto kVersions = "versions";
    if (common().has_threads() || !before.metadata.contains(kVersions)) return common().threads();
    const auto origin = (before.path / "metadata.json").string();
    const JsonFields metadata(before.metadata, origin);
    const JsonFields versions(metadata.object(kVersions), metadata.place_of(kVersions));
    if (!versions.has("threads")) return common().threads();
    const auto threads = versions.whole("threads");
    check(threads >= 1 && threads <= kMostThreads, versions.place_of("threads"),
          ": must be from 1 to ", kMostThreads, ", is ", threads);
    return threads;
  }

  std::string run_;
  bool is_inexact_ = false;
};

const bool resume_registered =
    verbs().add("resume", {
                              .summary = "Go on exactly where a stopped or killed run was",
                              .make = [] { return std::make_unique<Resume>(); },
                          });

}  // namespace
}  // namespace kelvin
