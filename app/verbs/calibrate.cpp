#include "kelvin/experiment/tasks/calibrate.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <map>

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/network_input.h"
#include "app/cli/output_file.h"
#include "app/cli/readings_text.h"
#include "app/cli/terminal.h"
#include "app/cli/verb.h"
#include "kelvin/core/check.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

constexpr auto kBins = "measure.calibration.bins";

struct ShownReading {
  const char* name;
  const char* column;
};

constexpr std::array kShown = {
    ShownReading{"nll", "NLL"},
    ShownReading{"brier", "Brier"},
    ShownReading{"ece", "ECE"},
    ShownReading{"ece_equal_mass", "ECE equal mass"},
    ShownReading{"ece_classwise", "ECE class-wise"},
    ShownReading{"mce", "MCE"},
    ShownReading{"accuracy", "accuracy"},
};

std::string scaling_of(const Reading& reading) {
  return reading.definition.value("scaling", std::string());
}

// One row for each way of scaling, in the order in which they come.
Table calibration_table(const Readings& readings) {
  std::vector<std::string> scalings;
  std::map<std::string, std::string> cells;  // by scaling and name of the reading
  for (const auto& reading : readings) {
    const auto scaling = scaling_of(reading);
    cells[scaling + " " + reading.name] = short_number(reading.value, 4);
    if (reading.name != "nll") continue;
    scalings.push_back(scaling);
    if (!reading.definition.contains("temperature")) continue;
    cells[scaling + " temperature"] =
        short_number(reading.definition.at("temperature").get<double>(), 6);
  }
  Table table{.columns = {{"scaling"}, {"T", Alignment::right}}};
  for (const auto& shown : kShown) table.columns.push_back({shown.column, Alignment::right});
  for (const auto& scaling : scalings) {
    std::vector<std::string> row = {scaling, cells[scaling + " temperature"]};
    for (const auto& shown : kShown) row.push_back(cells[scaling + " " + shown.name]);
    table.rows.push_back(std::move(row));
  }
  return table;
}

// "fitted on the validation split (500 samples), tested on the test split (1000)".
std::string samples_text(const Readings& readings) {
  for (const auto& reading : readings) {
    if (reading.name != "nll") continue;
    const auto& definition = reading.definition;
    return fmt::format(
        "fitted on {} ({} samples), tested on {} ({})",
        definition.at("fitted_on").get<std::string>(), definition.at("fit_samples").get<int64_t>(),
        definition.at("tested_on").get<std::string>(), definition.at("samples").get<int64_t>());
  }
  return "";
}

class CalibrateVerb : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    input_.declare(command,
                   "a run folder; an npz with logits and labels to fit on, and if it has one a "
                   "temperature; or a file of weights, for which the flags tell model and data",
                   "RUN, val.npz or WEIGHTS");
    command
        .add_option("--test", test_,
                    "an npz with logits and labels to test on; without it one half of val.npz "
                    "tests what the other fitted")
        ->type_name("test.npz");
    command.add_option("--bins", bins_, "of confidence [measure.calibration.bins]")->type_name("N");
    command.add_option("--output", curves_, "an npz for reliability diagrams, scales and biases")
        ->type_name("PATH");
    store_.declare(command);
    declare_definitions(command, with_definitions_);
  }

  int run() override {
    const auto format = common().format();
    input_.check_exists();
    check_test();
    check_output();
    const auto config = checked_config();
    Readings readings;
    const auto code = compute(
        "calibrate", common(),
        [&](const ComputeLibrary& library, const RunContext& context) {
          auto asked = request(input_.settings(config, library, context));
          asked.on_readings = [&](const Readings& found) { readings = found; };
          readings = library.run(asked, context);
        },
        [&] {
          if (!readings.empty()) show(readings, format);
        });
    if (code == kSuccess) show(readings, format);
    return code;
  }

 private:
  void show(const Readings& readings, TableFormat format) const {
    if (is_for_people(format) && !with_definitions_) {
      print_table(calibration_table(readings), format);
      const auto samples = samples_text(readings);
      if (!samples.empty()) print_remark(samples);
    } else {
      fmt::print("{}", readings_text(readings, format, with_definitions_, stdout_columns()));
    }
  }

  bool is_dump() const { return !input_.is_run() && !input_.is_weights(); }

  void check_test() const {
    if (test_.empty()) return;
    check(is_dump(), "--test: is for an npz to fit on; ", input_.path(), " has its own test split");
    check(fs::exists(test_), test_, ": no such file");
  }

  // Before minutes of work, not after them.
  void check_output() const {
    if (curves_.empty()) return;
    for (const auto& input : {input_.path(), test_}) {
      check(input.empty() || !fs::exists(curves_) || !fs::equivalent(curves_, input),
            "--output: is ", input, " itself");
    }
    check_output_file(curves_, ".npz", kMarkOfArrays);
  }

  Config checked_config() const {
    auto config = input_.config(common().data_folder());
    check(!config.has("measure.names"),
          "--measures: is the calibration here; see 'kelvin measure'");
    if (bins_.empty()) return config;
    check(!config.has(kBins), "--bins: contradicts ", kBins);
    config.set(kBins, whole_number_of("--bins", bins_));
    return config;
  }

  CalibrateRequest request(const Config& settings) const {
    CalibrateRequest request{.settings = settings, .test = test_, .curves = curves_};
    request.stores = !store_.is_refused();
    if (input_.is_run()) request.run = input_.path();
    if (is_dump()) request.validation = input_.path();
    return request;
  }

  NetworkInput input_{kForCalibrate, {"measure.", "seed"}};
  bool with_definitions_ = false;
  std::string test_;
  std::string bins_;
  std::string curves_;
  StoreFlag store_;
};

const bool calibrate_registered = verbs().add(
    "calibrate",
    {
        .summary = "How well probabilities are calibrated, before and after a fitted temperature",
        .make = [] { return std::make_unique<CalibrateVerb>(); },
    });

}  // namespace
}  // namespace kelvin
