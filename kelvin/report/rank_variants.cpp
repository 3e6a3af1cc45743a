#include "kelvin/report/rank_variants.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "kelvin/core/text.h"

namespace kelvin {
namespace {

// What sets the definitions apart, in the order of the table.
struct Variant {
  bool is_shift_free = true;
  bool has_bias = true;
  double gamma = 0;
  auto operator<=>(const Variant&) const = default;
};

bool is_variant(const Reading& reading) {
  const auto gamma = reading.definition.find("gamma");
  return reading.name == "solution_rank" && !definition_flag(reading.definition, "curve", false) &&
         reading.split != "train" && std::isfinite(reading.value) &&
         gamma != reading.definition.end() && gamma->is_number();
}

Variant variant_of(const Definition& definition) {
  return {.is_shift_free = definition_flag(definition, "shift_free", false),
          .has_bias = definition_flag(definition, "bias", true),
          .gamma = definition["gamma"].get<double>()};
}

}  // namespace

Table rank_variants_table(const std::vector<Run>& runs, const Comparison& comparison) {
  std::map<Variant, std::vector<std::vector<double>>, std::greater<>> values;
  for (size_t g = 0; g < comparison.groups.size(); ++g) {
    for (const size_t i : comparison.groups[g].runs) {
      for (const auto& reading : runs[i].readings) {
        if (!is_variant(reading)) continue;
        auto& row = values[variant_of(reading.definition)];
        row.resize(comparison.groups.size());
        row[g].push_back(reading.value);
      }
    }
  }

  Table table;
  table.columns = {
      {.name = "matrix"}, {.name = "bias"}, {.name = "γ", .alignment = Alignment::right}};
  for (const auto& group : comparison.groups) {
    table.columns.push_back({.name = group.label, .alignment = Alignment::right});
  }
  for (const auto& [variant, by_group] : values) {
    std::vector<std::string> row = {variant.is_shift_free ? "shift-free" : "raw",
                                    variant.has_bias ? "with" : "without",
                                    short_number(variant.gamma)};
    for (const auto& ranks : by_group) {
      row.push_back(ranks.empty() ? "–" : mean_text(summarise(ranks), {.name = "solution_rank"}));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace kelvin
