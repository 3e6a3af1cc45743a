#include <fmt/format.h>

#include <filesystem>

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/human_text.h"
#include "app/cli/setting_words.h"
#include "app/cli/study_output.h"
#include "app/cli/terminal.h"
#include "app/verbs/attention.h"
#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/experiment/tasks/train_retrieval.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

Table trained_table(const Json& rows) {
  Table table{.columns = {{"network"},
                          {"steps", Alignment::right},
                          {"seconds", Alignment::right},
                          {"ms per step", Alignment::right},
                          {"loss", Alignment::right},
                          {"accuracy", Alignment::right}}};
  for (const auto& row : rows) {
    const auto path = std::filesystem::path(row.at("file").get<std::string>());
    if (!row.contains("seconds")) {
      table.rows.push_back({path.stem().string(), row.at("steps").dump(), "there already"});
      continue;
    }
    const auto seconds = row.at("seconds").get<double>();
    table.rows.push_back({path.stem().string(), row.at("steps").dump(), short_number(seconds, 3),
                          short_number(1000 * seconds / row.at("steps").get<double>(), 3),
                          short_number(row.at("loss").get<double>(), 3),
                          fmt::format("{:.1f} %", 100 * row.at("accuracy").get<double>())});
  }
  table.notes = {"Loss and accuracy: means over the last 100 steps."};
  return table;
}

class AttentionTrain : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    declare_settings(command, overrides_,
                     "any setting, for example retrieval.width=64 or retrieval.attention_k=4");
    const auto option = [&](const char* flag, std::string& text, const char* help,
                            const char* type) {
      command.add_option(flag, text, help)->type_name(type);
    };
    option("--attention", attention_, "the map; see 'kelvin list softmaxes' [retrieval.attention]",
           "NAME of <softmaxes>");
    option("--steps", steps_, "of 128 sets each (default: 5000) [retrieval.steps]", "N");
    option("--seeds", seeds_, "which, as 0,1,2 (default: 0) [retrieval.seed]", "A,B");
    command.add_option("--output", output_, "folder for a file of weights of each seed")
        ->type_name("DIR")
        ->required();
  }

  int run() override {
    const auto format = common().format();
    TrainRetrievalRequest request{.seeds = whole_numbers_of("--seeds", seeds_), .output = output_};
    if (!attention_.empty()) request.config.set("retrieval.attention", attention_);
    if (!steps_.empty()) request.config.set("retrieval.steps", whole_number_of("--steps", steps_));
    for (const auto& assignment : overrides_) request.config.apply_override(assignment);
    check(!request.config.has("retrieval.seed"), "retrieval.seed: is what --seeds says");
    Json rows;
    const auto code = compute("attention train", common(),
                              [&](const ComputeLibrary& library, const RunContext& context) {
                                rows = library.run(request, context);
                              });
    if (code != kSuccess) return code;
    if (format == TableFormat::json || format == TableFormat::jsonl) {
      fmt::print("{}\n", json_text(rows, format == TableFormat::json ? 1 : -1));
    } else {
      print_table(trained_table(rows), format);
    }
    return kSuccess;
  }

 private:
  std::vector<std::string> overrides_;
  std::string attention_;
  std::string steps_;
  std::string seeds_ = "0";
  std::string output_;
};

const bool attention_train_registered = attention_subcommands().add(
    "train", {
                 .summary = "Networks that retrieve the class of the largest item, a seed each",
                 .make = [] { return std::make_unique<AttentionTrain>(); },
             });

}  // namespace
}  // namespace kelvin
