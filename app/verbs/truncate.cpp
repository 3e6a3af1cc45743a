#include "kelvin/experiment/tasks/truncate.h"

#include <fmt/format.h>

#include <filesystem>

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/human_text.h"
#include "app/cli/network_input.h"
#include "app/cli/terminal.h"
#include "app/cli/verb.h"
#include "kelvin/core/check.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// One row for each of the two networks.
Table comparison_table(const Json& result) {
  Table table{.columns = {{"network"},
                          {"layers", Alignment::right},
                          {"accuracy", Alignment::right},
                          {"parameters", Alignment::right},
                          {"MACs", Alignment::right},
                          {"images/s", Alignment::right}}};
  const auto add = [&](const std::string& name, const Json& layers, const Json& network) {
    const auto speed = network.value("images_per_second", 0.0);
    table.rows.push_back({name, layers.dump(),
                          fmt::format("{:.2f} %", 100 * network.at("accuracy").get<double>()),
                          network.at("parameters").dump(), network.at("macs").dump(),
                          speed > 0 ? fmt::format("{:.0f}", speed) : ""});
  };
  add(result.at("model"), result.at("layers"), result.at("whole"));
  add("up to " + result.at("layer").get<std::string>() + ", and its probe",
      result.at("place").get<int64_t>() + 1, result.at("truncated"));
  return table;
}

class TruncateVerb : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    input_.declare(command);
    command
        .add_option("--layer", layer_,
                    "the last layer to keep; otherwise the first whose probe is good enough "
                    "[measure.linear_probe.threshold]")
        ->type_name("NAME");
    command.add_option("--output", output_, "a new safetensors file for the truncated network")
        ->type_name("PATH");
  }

  int run() override {
    const auto format = common().format();
    input_.check_exists();
    check(input_.is_run() || input_.is_weights(), input_.path(),
          ": holds no network; needs a run or a file of weights");
    check_output();
    const auto config = input_.config(common().data_folder());
    Json result;
    const auto code = compute(
        "truncate", common(), [&](const ComputeLibrary& library, const RunContext& context) {
          TruncateRequest request{.settings = config, .layer = layer_, .output = output_};
          request.settings = input_.settings(config, library, context);
          if (input_.is_run()) request.run = input_.path();
          result = library.run(request, context);
        });
    if (code != kSuccess) return code;
    if (format == TableFormat::json || format == TableFormat::jsonl) {
      fmt::print("{}\n", json_text(result, format == TableFormat::json ? 1 : -1));
    } else {
      print_table(comparison_table(result), format);
    }
    if (!output_.empty()) print_for_people(how_to_use(result));
    return kSuccess;
  }

 private:
  // Before minutes of probing, not after them.
  void check_output() const {
    if (output_.empty()) return;
    const auto folder = fs::absolute(output_).parent_path();
    check(output_.ends_with(".safetensors"), "--output: must end in .safetensors, got '", output_,
          "'");
    check(fs::is_directory(folder), "--output: there is no folder ", folder.string());
    check(!fs::exists(output_), "--output: ", output_, " exists already");
  }

  std::string how_to_use(const Json& result) const {
    auto text = fmt::format(
        "written to {}; use it with --model truncated model.of={} model.layer={} model.pool={}",
        output_, result.at("model").get<std::string>(), result.at("layer").get<std::string>(),
        result.at("pool").dump());
    for (const auto& setting : result.at("settings")) {
      text += ' ';
      text += setting.get<std::string>();
    }
    return text + "\n";
  }

  NetworkInput input_{kForTruncate, {"measure."}};
  std::string layer_;
  std::string output_;
};

const bool truncate_registered = verbs().add(
    "truncate",
    {
        .summary = "The first layers that do the work, and their probe, as a network of its own",
        .make = [] { return std::make_unique<TruncateVerb>(); },
    });

}  // namespace
}  // namespace kelvin
