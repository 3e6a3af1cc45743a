#include "kelvin/report/tables/layer_table.h"

#include <algorithm>
#include <map>

#include "kelvin/report/tables/quantity_table.h"
#include "kelvin/report/tables/run_values.h"

namespace kelvin {
namespace {

constexpr size_t kColumnsPerTable = 6;
constexpr int kLayerDigits = 4;

// One column: readings of one name on one population, by layer.
struct LayerColumn {
  std::string name;
  std::map<std::string, const Reading*> cells = {};
};

std::string column_name(const Reading& reading) {
  auto name = reading.name;
  if (!reading.ood.empty()) name += " " + reading.ood;
  if (reading.split == "train") name += " train";
  return name;
}

// What is the same for all layers of a column.
Definition common_definition(const LayerColumn& column) {
  const auto& first = column.cells.begin()->second->definition;
  auto common = first;
  for (const auto& [layer, reading] : column.cells) {
    for (const auto& [key, value] : first.items()) {
      if (!reading->definition.contains(key) || reading->definition[key] != value) {
        common.erase(key);
      }
    }
  }
  return common;
}

}  // namespace

LayerTables layer_tables(const Readings& readings) {
  std::vector<std::string> layers;
  std::vector<LayerColumn> columns;
  LayerTables result{.tables = {}, .meanings = {}, .rest = {}, .left_out = 0};
  for (const auto& reading : readings) {
    if (reading.layer.empty() || reading.index || !reading.detector.empty()) {
      result.rest.push_back(reading);
      continue;
    }
    if (std::find(layers.begin(), layers.end(), reading.layer) == layers.end()) {
      layers.push_back(reading.layer);
    }
    const auto name = column_name(reading);
    auto column = std::find_if(columns.begin(), columns.end(),
                               [&](const auto& each) { return each.name == name; });
    if (column == columns.end()) {
      columns.push_back({.name = name});
      column = columns.end() - 1;
    }
    if (!column->cells.emplace(reading.layer, &reading).second) ++result.left_out;
  }
  for (size_t begin = 0; begin < columns.size(); begin += kColumnsPerTable) {
    const auto end = std::min(columns.size(), begin + kColumnsPerTable);
    Table table{.columns = {{"layer"}}};
    for (size_t i = begin; i < end; ++i) {
      table.columns.push_back({columns[i].name, Alignment::right});
    }
    for (const auto& layer : layers) {
      std::vector<std::string> row = {layer};
      bool is_empty = true;
      for (size_t i = begin; i < end; ++i) {
        const auto cell = columns[i].cells.find(layer);
        row.push_back(cell == columns[i].cells.end() ? ""
                                                     : marked_value(*cell->second, kLayerDigits));
        is_empty = is_empty && row.back().empty();
      }
      if (!is_empty) table.rows.push_back(std::move(row));
    }
    table.notes = notes_on_marks(table);
    result.tables.push_back(std::move(table));
  }
  for (const auto& column : columns) {
    result.meanings.push_back(column.name + ": " + definition_text(common_definition(column)));
  }
  return result;
}

}  // namespace kelvin
