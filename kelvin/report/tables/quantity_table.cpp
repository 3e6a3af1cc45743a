#include "kelvin/report/tables/quantity_table.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "kelvin/core/text.h"
#include "kelvin/report/tables/run_values.h"

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

namespace {

constexpr const char* kTilde = "~ ";
constexpr int kDigits = 5;

// "test", "train", "svhn", "svhn train"; "value" for what is of no split.
std::string population_of(const Reading& reading) {
  if (reading.ood.empty()) return reading.split.empty() ? "value" : reading.split;
  return reading.split == "train" ? reading.ood + " train" : reading.ood;
}

// Its place in `names`, to which it is added if it is new.
size_t place_of(const std::string& name, std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  const auto place = static_cast<size_t>(found - names.begin());
  if (found == names.end()) names.push_back(name);
  return place;
}

bool has_cell_with(const Table& table, const char* sign) {
  return std::any_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
    return std::any_of(row.begin(), row.end(), [&](const std::string& cell) {
      return cell.find(sign) != std::string::npos;
    });
  });
}

}  // namespace

std::string marked_value(const Reading& reading, int digits) {
  const auto& meaning = reading.definition;
  const auto text = short_number(reading.value, digits);
  if (!definition_flag(meaning, "is_reliable", true)) return kTilde + text;
  const bool is_at_bound = reading.name.find("rank") != std::string::npos &&
                           meaning.contains("upper_bound") &&
                           meaning["upper_bound"] == reading.value;
  return is_at_bound ? text + kDagger : text;
}

std::vector<std::string> notes_on_marks(const Table& table) {
  std::vector<std::string> notes;
  if (has_cell_with(table, kDagger)) {
    notes.emplace_back(
        "† At its upper bound, which the number of samples, features or classes sets: it could not "
        "be higher.");
  }
  if (has_cell_with(table, kTilde)) {
    notes.emplace_back(
        "~ Not reliable: the sketch it was taken from is too small for it; rank_bounds in its "
        "definition has between what it lies.");
  }
  return notes;
}

QuantityTable quantity_table(const Readings& readings) {
  std::vector<std::string> names;
  std::vector<std::string> populations;
  std::map<std::pair<size_t, size_t>, std::string> cells;  // by place of name and population
  QuantityTable result;
  for (const auto& reading : readings) {
    const auto row = place_of(reading.name, names);
    const auto column = place_of(population_of(reading), populations);
    const bool is_first =
        cells.emplace(std::pair(row, column), marked_value(reading, kDigits)).second;
    if (!is_first) ++result.left_out;
  }
  auto& table = result.table;
  table.columns = {{"quantity"}};
  for (const auto& population : populations) {
    table.columns.push_back({population, Alignment::right});
  }
  for (size_t row = 0; row < names.size(); ++row) {
    table.rows.push_back({names[row]});
    for (size_t column = 0; column < populations.size(); ++column) {
      const auto cell = cells.find({row, column});
      table.rows.back().push_back(cell == cells.end() ? "" : cell->second);
    }
  }
  table.notes = notes_on_marks(table);
  return result;
}

}  // namespace kelvin
