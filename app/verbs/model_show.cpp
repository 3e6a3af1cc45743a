#include <fmt/format.h>

#include "app/cli/common_flags.h"
#include "app/cli/compute.h"
#include "app/cli/human_text.h"
#include "app/cli/setting_words.h"
#include "app/cli/terminal.h"
#include "app/verbs/model.h"
#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/experiment/tasks/plan.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

// "64x3x3x3"
std::string shape_text(const Json& shape) {
  std::vector<std::string> sizes;
  for (const auto& size : shape) sizes.push_back(size.dump());
  return join(sizes, "x");
}

// A row for each layer; what is no layer and the sum at the end.
Table layer_table(const Json& model) {
  Table table{.columns = {{"layer"},
                          {"weight"},
                          {"input"},
                          {"output"},
                          {"parameters", Alignment::right},
                          {"macs", Alignment::right}}};
  int64_t parameters = model.at("parameters").get<int64_t>();
  int64_t macs = model.at("macs").get<int64_t>();
  for (const auto& layer : model.at("layers")) {
    table.rows.push_back({layer.at("name"), shape_text(layer.at("weight")),
                          shape_text(layer.at("input")), shape_text(layer.at("output")),
                          layer.at("parameters").dump(), layer.at("macs").dump()});
    parameters -= layer.at("parameters").get<int64_t>();
    macs -= layer.at("macs").get<int64_t>();
  }
  table.rows.push_back(
      {"(all else)", "", "", "", std::to_string(parameters), std::to_string(macs)});
  table.rows.push_back({fmt::format("{} layers", model.at("layers").size()), "", "", "",
                        model.at("parameters").dump(), model.at("macs").dump()});
  return table;
}

class ShowModel : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    declare_input(command, "NAME", name_, "a model, see 'kelvin list models'")
        ->type_name("NAME of <models>")
        ->required();
    command.add_option("--input", input_, "channels, height and width (default: 3,32,32)")
        ->type_name("C,H,W");
    command.add_option("--classes", classes_, "how many (default: 10)")->type_name("N");
    declare_settings(command, overrides_, "settings of the model, for example model.width=0.5");
  }

  int run() override {
    const auto format = common().format();
    Config config;
    config.set("model.name", name_);
    for (const auto& assignment : overrides_) config.apply_override(assignment);
    std::vector<int64_t> shape;
    for (const auto& size : names_of("--input", input_)) {
      shape.push_back(whole_number_of("--input", size));
    }
    const auto classes = whole_number_of("--classes", classes_);
    const auto library = load_compute_library(/*threads=*/1);
    const auto model =
        library.run(DescribeModelRequest{.config = config, .shape = shape, .classes = classes});
    if (format == TableFormat::json || format == TableFormat::jsonl) {
      fmt::print("{}\n", json_text(model, format == TableFormat::json ? 1 : -1));
    } else {
      print_table(layer_table(model), format);
    }
    return kSuccess;
  }

 private:
  std::string name_;
  std::string input_ = "3,32,32";
  std::string classes_ = "10";
  std::vector<std::string> overrides_;
};

const bool model_show_registered = model_subcommands().add(
    "show", {
                .summary = "The layers of a network with parameters and MACs",
                .make = [] { return std::make_unique<ShowModel>(); },
            });

}  // namespace
}  // namespace kelvin
