#include <fmt/format.h>

#include <filesystem>

#include "app/compute_flags.h"
#include "app/exit_code.h"
#include "app/format_flag.h"
#include "app/network_input.h"
#include "app/output_file.h"
#include "app/readings_text.h"
#include "app/verb.h"
#include "kelvin/core/check.h"

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
    compute_.declare(command);
    format_.declare(command);
  }

  int run() override {
    const auto format = format_.format();
    input_.check_exists();
    check_output();
    const auto config = checked_config();
    Readings readings;
    const auto code =
        compute_.run("measure", [&](const ComputeApi& api, const RunContext& context) {
          if (input_.is_weights()) {
            readings =
                api.measure_weights({.settings = api.resolve(config), .curves = curves_}, context);
          } else {
            const auto measure = input_.is_run() ? api.measure_run : api.measure_dump;
            readings = measure(input_.path(), {.settings = config, .curves = curves_}, context);
          }
        });
    if (code == kSuccess) fmt::print("{}", readings_text(readings, format));
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
    auto config = input_.config({"measure."}, compute_.data_folder());
    if (!is_exact_) return config;
    check(!config.has(kProtocol), "--exact: contradicts ", kProtocol);
    config.set(kProtocol, "exact");
    return config;
  }

  NetworkInput input_;
  bool is_exact_ = false;
  std::string curves_;
  ComputeFlags compute_;
  FormatFlag format_;
};

const bool registered = verbs().add(
    "measure", {
                   .summary = "Ranks, spectra, norms and more of a run or of a dump of features",
                   .make = [] { return std::make_unique<MeasureVerb>(); },
               });

}  // namespace
}  // namespace kelvin
