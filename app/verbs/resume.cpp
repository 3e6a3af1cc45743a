#include <fmt/format.h>

#include "app/compute_library.h"
#include "app/data_folder.h"
#include "app/exit_code.h"
#include "app/format_flag.h"
#include "app/human_text.h"
#include "app/interrupts.h"
#include "app/metadata.h"
#include "app/run_context.h"
#include "app/run_result.h"
#include "app/threads_flag.h"
#include "app/verb.h"
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
                     "differently");
    command.add_flag("-q,--quiet", is_quiet_, "no progress");
    data_folder_.declare(command);
    threads_.declare(command);
    format_.declare(command);
  }

  int run() override {
    const auto format = format_.format();
    const auto data_folder = data_folder_.folder();
    const auto before = load_run(run_);
    if (before.status == RunStatus::finished) {  // what was asked for is there
      print_for_people(fmt::format("kelvin resume: {}: is finished; nothing to resume\n", run_));
      return print_run_result("resume", run_, format);
    }
    const auto& api = load_compute_library(threads_for(before));
    ProgressBar bar(is_quiet_);
    auto context = run_context(bar);
    context.data_folder = data_folder;
    catch_interrupts(SecondInterrupt::exits);
    api.resume(run_, run_metadata(api.versions()), is_inexact_, context);
    bar.clear();
    return print_run_result("resume", run_, format);
  }

 private:
  // As many as the run had, unless others are asked for.
  int64_t threads_for(const Run& before) const {
    const nlohmann::ordered_json::json_pointer threads("/versions/threads");
    if (threads_.is_given() || !before.metadata.contains(threads)) return threads_.threads();
    return before.metadata.at(threads).get<int64_t>();
  }

  std::string run_;
  DataFolderFlag data_folder_;
  ThreadsFlag threads_;
  FormatFlag format_;
  bool is_inexact_ = false;
  bool is_quiet_ = false;
};

const bool registered =
    verbs().add("resume", {
                              .summary = "Go on exactly where a stopped or killed run was",
                              .make = [] { return std::make_unique<Resume>(); },
                          });

}  // namespace
}  // namespace kelvin
