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
    command.add_option("--id-test", id_test_, "an npz of known samples; --ood is then NAME=x.npz")
        ->type_name("x.npz");
    command
        .add_option("--output", output_,
                    "a folder for the scores as CSV; of a run they also go to its own")
        ->type_name("FOLDER");
    compute_.declare(command);
    format_.declare(command);
  }

  int run() override {
    const auto format = format_.format();
    const bool is_of_dumps = !id_train_.empty() || !id_test_.empty();
    check(input_.is_given() != is_of_dumps,
          "needs a run or a file of weights, or dumps as --id-train and --id-test; one of the two");
    if (!output_.empty()) check_scores_folder(output_);
    Readings readings;
    const auto code = is_of_dumps ? detect_in_dumps(readings) : detect_in_network(readings);
    if (code == kSuccess) fmt::print("{}", readings_text(readings, format));
    return code;
  }

 private:
  int detect_in_network(Readings& readings) const {
    input_.check_exists();
    check(input_.is_run() || input_.is_weights(), input_.path(),
          ": is one dump; give three as --id-train, --id-test and --ood NAME=x.npz");
    auto config = input_.config({"measure.", "detector.", kOod}, compute_.data_folder());
    check(!config.has("measure.names"), "--measures: are detectors here; see 'kelvin measure'");
    check(config.has(kOod) || knows_foreign_data(), input_.path(),
          ": knows no foreign data sets; name some with --ood");
    config.set("measure.names", std::vector<std::string>());
    if (!config.has(kDetectors)) config.set(kDetectors, std::vector<std::string>{"all"});
    if (!config.has(kTrainSamples)) config.set(kTrainSamples, kManySamples);
    return compute_.run("ood", [&](const ComputeApi& api, const RunContext& context) {
      readings =
          input_.is_run()
              ? api.measure_run(input_.path(), {.settings = config, .scores = output_}, context)
              : api.measure_weights({.settings = api.resolve(config), .scores = output_}, context);
    });
  }

  // Before an hour of forward passes, not after it.
  bool knows_foreign_data() const {
    if (!input_.is_run()) return false;
    std::vector<std::string> names;
    auto section = Config::load(fs::path(input_.path()) / "config.toml").section("data");
    section.read("ood", names);
    return !names.empty();
  }

  int detect_in_dumps(Readings& readings) const {
    check(!id_train_.empty() && !id_test_.empty(), "--id-train and --id-test: both are needed");
    const auto config = input_.config_without_network();
    auto values = config.values();
    values.erase(kOod);
    const DetectRequest request{.settings = Config(values),
                                .id_train = id_train_,
                                .id_test = id_test_,
                                .ood = dumps(config),
                                .scores = output_};
    for (const auto& path : {id_train_, id_test_}) check_npz(path);
    for (const auto& each : request.ood) check_npz(each.npz.string());
    return compute_.run("ood", [&](const ComputeApi& api, const RunContext& context) {
      readings = api.detect_in_dumps(request, context);
    });
  }

  static void check_npz(const std::string& path) {
    check(fs::is_regular_file(path), path, ": no such file");
  }

  static std::vector<NamedDump> dumps(const Config& config) {
    std::vector<std::string> words;
    auto section = config.section("data");
    section.read("ood", words);
    check(!words.empty(), "--ood: needs dumps of foreign samples, as NAME=x.npz");
    std::vector<NamedDump> named;
    named.reserve(words.size());
    for (const auto& word : words) {
      const auto equals = word.find('=');
      check(equals != std::string::npos && equals > 0 && equals + 1 < word.size(),
            "--ood: must be NAME=x.npz beside dumps, got '", word, "'");
      named.push_back({.name = word.substr(0, equals), .npz = word.substr(equals + 1)});
    }
    return named;
  }

  NetworkInput input_;
  std::string id_train_;
  std::string id_test_;
  std::string output_;
  ComputeFlags compute_;
  FormatFlag format_;
};

const bool registered = verbs().add(
    "ood", {
               .summary = "How well detectors tell foreign data apart: AUROC, AUPR, FPR95",
               .make = [] { return std::make_unique<OodVerb>(); },
           });

}  // namespace
}  // namespace kelvin
