#include <fmt/format.h>

#include <filesystem>

#include "app/compute_library.h"
#include "app/data_folder.h"
#include "app/exit_code.h"
#include "app/flag_values.h"
#include "app/format_flag.h"
#include "app/human_text.h"
#include "app/interrupts.h"
#include "app/readings_text.h"
#include "app/run_context.h"
#include "app/threads_flag.h"
#include "app/verb.h"
#include "kelvin/core/check.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

class MeasureVerb : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    command
        .add_option("INPUT", input_,
                    "a run folder, or an npz with logits and labels, and if it has them features, "
                    "weight, bias, temperature")
        ->type_name("RUN or x.npz")
        ->required();
    command.add_option("--measures", measures_, "which ones; see 'kelvin list measures'")
        ->type_name("A,B");
    command.add_flag("-q,--quiet", is_quiet_, "no progress");
    data_folder_.declare(command);
    threads_.declare(command);
    format_.declare(command);
  }

  int run() override {
    const auto format = format_.format();
    const auto threads = threads_.threads();
    std::vector<std::string> measures;
    if (!measures_.empty()) measures = names_of("--measures", measures_);
    check(fs::exists(input_), input_, ": no such run or file");
    const bool is_folder = fs::is_directory(input_);
    check(!is_folder || is_run(input_), input_, ": is not a run folder (no config.toml)");

    const auto& api = load_compute_library(threads);
    catch_interrupts(SecondInterrupt::exits);
    Readings readings;
    try {
      ProgressBar bar(is_quiet_);
      const auto measure = is_folder ? api.measure_run : api.measure_dump;
      auto context = run_context(bar);
      context.data_folder = data_folder_.folder();
      readings = measure(input_, measures, context);
    } catch (const Error& error) {
      if (interrupts() == 0) throw;
      print_for_people(fmt::format("kelvin measure: {}\n", error.what()));
      return interrupt_exit_code();
    }
    fmt::print("{}", readings_text(readings, format));
    return kSuccess;
  }

 private:
  std::string input_;
  std::string measures_;
  bool is_quiet_ = false;
  DataFolderFlag data_folder_;
  ThreadsFlag threads_;
  FormatFlag format_;
};

const bool registered = verbs().add(
    "measure", {
                   .summary = "Ranks, spectra, norms and more of a run or of a dump of features",
                   .make = [] { return std::make_unique<MeasureVerb>(); },
               });

}  // namespace
}  // namespace kelvin
