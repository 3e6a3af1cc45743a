#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "app/cli/catalog_file.h"
#include "app/cli/common_flags.h"
#include "app/cli/terminal.h"
#include "app/cli/verb.h"
#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/runs/recipe.h"

namespace kelvin {
namespace {

struct ListedKind {
  const char* name;
  const char* summary;
};

constexpr std::array kKinds = {
    ListedKind{"models", "networks: --model"},
    ListedKind{"datasets", "what to learn, and OOD data: --dataset, --ood"},
    ListedKind{"measures", "what to measure of a network: --measures"},
    ListedKind{"detectors", "scores that tell OOD data apart: --detectors"},
    ListedKind{"softmaxes", "maps from logits to probabilities"},
    ListedKind{"losses", "what training minimises: --loss"},
    ListedKind{"recipes", "comparisons of several runs: sweep, reproduce, demo --recipe"},
};

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  names.reserve(kKinds.size());
  for (const auto& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

Table kind_table() {
  Table table{.columns = {{"kind"}, {"what it lists"}}};
  for (const auto& kind : kKinds) table.rows.push_back({kind.name, kind.summary});
  return table;
}

Table catalog_table(const std::string& kind) {
  Table table{.columns = {{"name"}, {"summary"}, {"reference"}}};
  for (const auto& entry : catalog_entries(kind)) {
    table.rows.push_back({entry.name, entry.summary, entry.reference});
  }
  return table;
}

Table model_table() {
  Table table{.columns = {{"name"},
                          {"layers", Alignment::right},
                          {"parameters", Alignment::right},
                          {"macs", Alignment::right},
                          {"summary"},
                          {"reference"}}};
  // Of a network in a file nothing is known.
  const auto number = [](int64_t count) { return count == 0 ? "-" : std::to_string(count); };
  for (const auto& entry : catalog_entries("models")) {
    table.rows.push_back({entry.name, number(entry.layers), number(entry.parameters),
                          number(entry.macs), entry.summary, entry.reference});
  }
  table.notes = {
      "Parameters and multiply-accumulates (macs) are those for one image of 3 x 32 x 32 and 10 "
      "classes; 'kelvin model show' has others."};
  return table;
}

Table softmax_table() {
  Table table{.columns = {{"name"}, {"sums_to_one"}, {"summary"}, {"reference"}}};
  for (const auto& entry : catalog_entries("softmaxes")) {
    table.rows.push_back(
        {entry.name, entry.sums_to_one ? "yes" : "no", entry.summary, entry.reference});
  }
  return table;
}

Table recipe_table() {
  Table table{.columns = {{"name"}, {"summary"}, {"runs", Alignment::right}}};
  for (const auto& [name, text] : builtin_recipes()) {
    const auto recipe = parse_recipe(text, name, /*scale=*/"", /*overrides=*/{}, first_of_grid);
    table.rows.push_back({name, recipe.title, std::to_string(recipe.runs.size())});
  }
  return table;
}

Table table_of(const std::string& kind) {
  if (kind == "recipes") return recipe_table();
  if (kind == "softmaxes") return softmax_table();
  return kind == "models" ? model_table() : catalog_table(kind);
}

class List : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    command.add_option("KIND", kind_, join(kind_names(), ", ") + "; without it, these")
        ->type_name("KIND of " + join(kind_names(), "|"));
  }

  int run() override {
    const auto format = common().format();
    if (kind_.empty()) {
      print_table(kind_table(), format);
      return kSuccess;
    }
    const auto kinds = kind_names();
    const bool is_known = std::find(kinds.begin(), kinds.end(), kind_) != kinds.end();
    const auto guess = nearest_name(kind_, kinds);
    check(is_known, "nothing called '", kind_, "' to list",
          guess.empty() ? "." : "; did you mean '" + guess + "'?",
          " There are: ", join(kinds, ", "));
    print_table(table_of(kind_), format);
    return kSuccess;
  }

 private:
  std::string kind_;
};

const bool list_registered = verbs().add(
    "list",
    {
        .summary =
            "What there is: models, datasets, measures, detectors, softmaxes, losses, recipes",
        .make = [] { return std::make_unique<List>(); },
    });

}  // namespace
}  // namespace kelvin
