#include <fmt/format.h>

#include <numeric>

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/config_paths.h"
#include "app/cli/human_text.h"
#include "app/cli/interrupts.h"
#include "app/cli/run_context.h"
#include "app/cli/setting_words.h"
#include "app/cli/terminal.h"
#include "app/verbs/model.h"
#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/experiment/tasks/plan.h"
#include "kelvin/report/tables/comparison.h"
#include "kelvin/statistics/summary.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

struct NormColumn {
  const char* key;   // of the library's answer
  const char* name;  // of the table's column
};

constexpr std::array kColumns = {
    NormColumn{"initial_logits_norm_per_sample", "norm"},
    NormColumn{"initial_logits_norm_expected", "expected"},
    NormColumn{"initial_logits_norm_bound", "bound"},
    NormColumn{"initial_logits_norm_running_statistics", "running statistics"},
    NormColumn{"initial_features_norm_per_sample", "features"}};

// What the columns mean, below the table.
constexpr auto kColumnsNote =
    "Mean over seeds ± half of its 95 % interval, before any step. norm: of the logits per sample; "
    "expected and bound: its prediction and upper bound from the last layer; running statistics: "
    "the norm with these instead of a batch's own; features: the norm per sample of what the last "
    "layer takes.";

// "2.31 ± 0.12", the 95 % interval of the mean over seeds; "" if there are none: normalised logits
// have no prediction.
std::string interval_text(const Json& lines, const char* key) {
  std::vector<double> values;
  for (const auto& line : lines) {
    if (line.contains(key)) values.push_back(line.at(key).get<double>());
  }
  if (values.empty()) return "";
  return mean_text(summarise(values), {.name = "logits_norm_per_sample"});
}

class NormsOfModels : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    declare_input(command, "MODELS", models_, "which, as A,B; see 'kelvin list models'")
        ->type_name("A,B of <models>")
        ->required();
    command.add_option("--dataset", dataset_, "whose images (default: cifar10)")
        ->type_name("NAME of <datasets>");
    command.add_option("--seeds", seeds_, "how many draws of each (default: 10)")->type_name("N");
    command
        .add_option("--samples", samples_,
                    "training images (default: as many as a few seconds allow, 32 to 1024)")
        ->type_name("N");
    declare_settings(command, overrides_, "any setting, for example init.scheme=he");
  }

  int run() override {
    const auto format = common().format();
    const auto count = whole_number_of("--seeds", seeds_);
    check(count >= 1 && count <= 1000, "--seeds: must be from 1 to 1000, got ", count);
    std::vector<int64_t> seeds(static_cast<size_t>(count));
    std::iota(seeds.begin(), seeds.end(), int64_t{0});
    const auto samples = whole_number_of("--samples", samples_);
    check(samples == 0 || (samples >= 2 && samples <= 1024),
          "--samples: must be from 2 to 1024, got ", samples);
    const auto names = names_of("MODELS", models_);
    const auto library = load_compute_library(common().threads());
    catch_interrupts(SecondInterrupt::exits);
    ProgressBar bar(common().is_quiet());
    auto context = run_context(bar);
    context.data_folder = common().data_folder();

    auto document = Json::array();
    try {
      for (const auto& name : names) {
        const auto config = config_of(name, context.data_folder);
        const auto norms = library.run(
            InitialNormsRequest{.config = config, .seeds = seeds, .samples = samples}, context);
        document.push_back({{"model", name}, {"seeds", norms}});
      }
    } catch (const Error& error) {
      if (interrupts() == 0) throw;
      print_for_people(fmt::format("kelvin model norms: {}\n", shown_line(error.what())));
      return interrupt_exit_code();
    }
    bar.clear();
    print(document, format);
    return kSuccess;
  }

 private:
  Config config_of(const std::string& name, const std::filesystem::path& data_folder) const {
    Config config;
    config.set("model.name", name);
    config.set("data.name", dataset_);
    for (const auto& assignment : overrides_) config.apply_override(assignment);
    make_paths_absolute(config, data_folder);
    return config;
  }

  static void print(const Json& document, TableFormat format) {
    if (format == TableFormat::json || format == TableFormat::jsonl) {
      fmt::print("{}\n", json_text(document, format == TableFormat::json ? 1 : -1));
      return;
    }
    Table table{.columns = {{"model"},
                            {"parameters", Alignment::right},
                            {"samples", Alignment::right},
                            {"seeds", Alignment::right}}};
    for (const auto& column : kColumns) table.columns.push_back({column.name, Alignment::right});
    for (const auto& model : document) {
      const auto& lines = model.at("seeds");
      std::vector<std::string> row = {model.at("model"), lines.at(0).at("parameters").dump(),
                                      lines.at(0).at("norm_samples").dump(),
                                      std::to_string(lines.size())};
      for (const auto& column : kColumns) {
        row.push_back(interval_text(lines, column.key));
      }
      table.rows.push_back(row);
    }
    table.notes = {kColumnsNote};
    print_table(table, format);
  }

  std::string models_;
  std::string dataset_ = "cifar10";
  std::string seeds_ = "10";
  std::string samples_ = "0";
  std::vector<std::string> overrides_;
};

const bool model_norms_registered = model_subcommands().add(
    "norms", {
                 .summary = "Norm of the logits before training, over seeds, beside its prediction",
                 .make = [] { return std::make_unique<NormsOfModels>(); },
             });

}  // namespace
}  // namespace kelvin
