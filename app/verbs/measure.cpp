#include <fmt/format.h>

#include <filesystem>

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/network_input.h"
#include "app/cli/output_file.h"
#include "app/cli/readings_text.h"
#include "app/cli/terminal.h"
#include "app/cli/verb.h"
#include "kelvin/core/check.h"
#include "kelvin/experiment/run/run.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

constexpr auto kProtocol = "measure.layer_spectrum.protocol";

class MeasureVerb : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    input_.declare(command,
                   "a run folder; an npz with logits and labels, and if it has them features, "
                   "weight, bias, temperature; or a file of weights, for which the flags tell "
                   "model and data",
                   "RUN, x.npz or WEIGHTS");
    command.add_flag("--exact", is_exact_,
                     "spectra of layers of all features, whatever it takes "
                     "[measure.layer_spectrum.protocol=exact]");
    command.add_option("--output", curves_, "an npz for whole spectra and matrices")
        ->type_name("PATH");
    store_.declare(command);
    declare_definitions(command, with_definitions_);
  }

  int run() override {
    const auto format = common().format();
    input_.check_exists();
    check_output();
    const auto config = checked_config();
    Readings readings;
    const auto show = [&] {
      if (readings.empty()) return;
      fmt::print("{}", readings_text(readings, format, with_definitions_, stdout_columns()));
    };
    MeasureRequest request{.settings = config, .curves = curves_, .stores = !store_.is_refused()};
    request.on_readings = [&](const Readings& found) { readings = found; };
    const auto code = compute(
        "measure", common(),
        [&](const ComputeLibrary& library, const RunContext& context) {
          request.settings = input_.settings(config, library, context);
          if (!input_.is_weights()) {
            (input_.is_run() ? request.run : request.dump) = input_.path();
          }
          readings = library.run(request, context);
        },
        show);
    if (code == kSuccess) show();
    return code;
  }

 private:
  // Before an hour of measuring, not after it.
  void check_output() const {
    if (curves_.empty()) return;
    check(!fs::exists(curves_) || !fs::equivalent(curves_, input_.path()), "--output: is ",
          input_.path(), " itself");
    check_output_file(curves_, ".npz", kMarkOfArrays);
  }

  Config checked_config() const {
    auto config = input_.config(common().data_folder());
    if (!is_exact_) return config;
    check(!config.has(kProtocol), "--exact: contradicts ", kProtocol);
    config.set(kProtocol, "exact");
    return config;
  }

  NetworkInput input_{kForMeasure, {"measure."}};
  bool with_definitions_ = false;
  bool is_exact_ = false;
  std::string curves_;
  StoreFlag store_;
};

const bool measure_registered = verbs().add(
    "measure", {
                   .summary = "Ranks, spectra, norms and more of a run or of a dump of features",
                   .make = [] { return std::make_unique<MeasureVerb>(); },
               });

}  // namespace
}  // namespace kelvin
