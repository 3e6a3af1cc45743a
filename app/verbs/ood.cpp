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
#include "kelvin/experiment/evaluate/detect_in_dumps.h"
#include "kelvin/experiment/run/run.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

constexpr auto kOod = "data.ood";
constexpr auto kDetectors = "measure.detectors";
constexpr auto kTrainSamples = "measure.train_samples";
constexpr int64_t kManySamples = 50'000;

class OodVerb : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    input_.declare_optional(command,
                            "a run folder; or a file of weights, for which the flags tell model "
                            "and data; or nothing, with dumps as --id-train, --id-test and --ood",
                            "RUN or WEIGHTS");
    command.add_option("--id-train", id_train_, "an npz with features, logits, labels of training")
        ->type_name("x.npz");
    command
        .add_option("--id-test", id_test_,
                    "an npz of known samples; --ood is then x.npz or NAME=x.npz")
        ->type_name("x.npz");
    command
        .add_option("--output", output_,
                    "a folder for the scores as CSV; of a run they also go to its own")
        ->type_name("FOLDER");
    store_.declare(command);
    declare_definitions(command, with_definitions_);
  }

  int run() override {
    const auto format = common().format();
    const bool is_of_dumps = !id_train_.empty() || !id_test_.empty();
    check(input_.is_given() != is_of_dumps,
          "needs a run or a file of weights, or dumps as --id-train and --id-test; one of the two");
    if (!output_.empty()) check_scores_folder(output_);
    Readings readings;
    const auto show = [&] {
      if (readings.empty()) return;
      fmt::print("{}", readings_text(readings, format, with_definitions_, stdout_columns()));
    };
    const auto code =
        is_of_dumps ? detect_in_dumps(readings, show) : detect_in_network(readings, show);
    if (code == kSuccess) show();
    return code;
  }

 private:
  int detect_in_network(Readings& readings, const std::function<void()>& on_failure) const {
    input_.check_exists();
    check(input_.is_run() || input_.is_weights(), input_.path(),
          ": is one dump; give three as --id-train, --id-test and --ood x.npz");
    auto config = input_.config(common().data_folder());
    check(!config.has("measure.names"), "--measures: are detectors here; see 'kelvin measure'");
    check(config.has(kOod) || knows_ood_data(), input_.path(),
          ": knows no OOD data sets; name some with --ood");
    config.set("measure.names", std::vector<std::string>());
    if (!config.has(kDetectors)) config.set(kDetectors, std::vector<std::string>{"all"});
    if (!config.has(kTrainSamples)) config.set(kTrainSamples, kManySamples);
    MeasureRequest request{.settings = config, .scores = output_, .stores = !store_.is_refused()};
    request.on_readings = [&](const Readings& found) { readings = found; };
    return compute(
        "ood", common(),
        [&](const ComputeLibrary& library, const RunContext& context) {
          request.settings = input_.settings(config, library, context);
          if (input_.is_run()) request.run = input_.path();
          readings = library.run(request, context);
        },
        on_failure);
  }

  // Before an hour of forward passes, not after it.
  bool knows_ood_data() const {
    if (!input_.is_run()) return false;
    std::vector<std::string> names;
    auto section = Config::load(fs::path(input_.path()) / "config.toml").section("data");
    section.read("ood", names);
    return !names.empty();
  }

  int detect_in_dumps(Readings& readings, const std::function<void()>& on_failure) const {
    check(!id_train_.empty() && !id_test_.empty(), "--id-train and --id-test: both are needed");
    const auto config = input_.config_without_network();
    auto values = config.values();
    values.erase(kOod);
    DetectRequest request{.settings = Config(values),
                          .id_train = id_train_,
                          .id_test = id_test_,
                          .ood = dumps(config),
                          .scores = output_};
    request.on_readings = [&](const Readings& found) { readings = found; };
    for (const auto& path : {id_train_, id_test_}) check_npz(path);
    for (const auto& each : request.ood) check_npz(each.npz.string());
    return compute(
        "ood", common(),
        [&](const ComputeLibrary& library, const RunContext& context) {
          readings = library.run(request, context);
        },
        on_failure);
  }

  static void check_npz(const std::string& path) {
    check(fs::is_regular_file(path), path, ": no such file");
  }

  static std::vector<NamedDump> dumps(const Config& config) {
    std::vector<std::string> words;
    auto section = config.section("data");
    section.read("ood", words);
    check(!words.empty(), "--ood: needs dumps of OOD samples, as x.npz or NAME=x.npz");
    std::vector<NamedDump> named;
    named.reserve(words.size());
    for (const auto& word : words) {
      named.push_back(dump_of(word));
    }
    return named;
  }

  // NAME=x.npz, or x.npz, which is called x.  A path may have an equals sign in it.
  static NamedDump dump_of(const std::string& word) {
    const auto equals = word.find('=');
    std::error_code ignored;  // a name may be longer than any path
    const bool is_named = equals != std::string::npos && equals > 0 && word.find('/') > equals &&
                          !fs::is_regular_file(word, ignored);
    const fs::path npz = is_named ? word.substr(equals + 1) : word;
    check(npz.has_stem(), "--ood: must be x.npz or NAME=x.npz beside dumps, got '", word, "'");
    return {.name = is_named ? word.substr(0, equals) : npz.stem().string(), .npz = npz};
  }

  NetworkInput input_{kForOod, {"measure.", "detector.", kOod}};
  bool with_definitions_ = false;
  std::string id_train_;
  std::string id_test_;
  std::string output_;
  StoreFlag store_;
};

const bool ood_registered =
    verbs().add("ood", {
                           .summary = "How well detectors tell OOD data apart: AUROC, AUPR, FPR95",
                           .make = [] { return std::make_unique<OodVerb>(); },
                       });

}  // namespace
}  // namespace kelvin
