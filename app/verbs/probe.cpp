#include <fmt/format.h>

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/network_input.h"
#include "app/cli/readings_text.h"
#include "app/cli/terminal.h"
#include "app/cli/verb.h"
#include "kelvin/core/check.h"
#include "kelvin/experiment/run/run.h"

namespace kelvin {
namespace {

constexpr auto kSettings = "measure.linear_probe.";

class ProbeVerb : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    input_.declare(command);
    store_.declare(command);
    command
        .add_option("--probe", protocol_,
                    "how probes are trained: diagnose (pooled features, to convergence), "
                    "reproduce (all features, streamed) or published (the same by Adam, 30 "
                    "passes) [measure.linear_probe.protocol]")
        ->type_name("NAME of diagnose|reproduce|published");
    command
        .add_option("--tap", tap_,
                    "output, or before_add: what a residual branch has before the shortcut "
                    "[measure.linear_probe.tap]")
        ->type_name("NAME of output|before_add");
    declare_definitions(command, with_definitions_);
  }

  int run() override {
    const auto format = common().format();
    input_.check_exists();
    check(input_.is_run() || input_.is_weights(), input_.path(),
          ": probes are trained on what layers do with images; needs a run or a file of weights");
    auto config = input_.config(common().data_folder());
    check(!config.has("measure.names"), "--measures: are the probes here; see 'kelvin measure'");
    config.set("measure.names", std::vector<std::string>{"linear_probe"});
    config.set("measure.detectors", std::vector<std::string>());
    set_flag(config, "--probe", "protocol", protocol_);
    set_flag(config, "--tap", "tap", tap_);
    Readings readings;
    const auto show = [&] {
      if (readings.empty()) return;
      fmt::print("{}", readings_text(readings, format, with_definitions_, stdout_columns()));
    };
    MeasureRequest request{.settings = config, .stores = !store_.is_refused()};
    request.on_readings = [&](const Readings& found) { readings = found; };
    const auto code = compute(
        "probe", common(),
        [&](const ComputeLibrary& library, const RunContext& context) {
          request.settings = input_.settings(config, library, context);
          if (input_.is_run()) request.run = input_.path();
          readings = library.run(request, context);
        },
        show);
    if (code == kSuccess) show();
    return code;
  }

 private:
  static void set_flag(Config& config, const std::string& flag, const std::string& name,
                       const std::string& value) {
    if (value.empty()) return;
    const auto key = kSettings + name;
    check(!config.has(key), flag, ": contradicts ", key);
    config.set(key, value);
  }

  NetworkInput input_{kForProbe, {"measure.", "data.ood"}};
  bool with_definitions_ = false;
  std::string protocol_;
  std::string tap_;
  StoreFlag store_;
};

const bool probe_registered = verbs().add(
    "probe",
    {
        .summary = "Linear probes on every layer in and out of distribution; kappa and rho",
        .make = [] { return std::make_unique<ProbeVerb>(); },
    });

}  // namespace
}  // namespace kelvin
