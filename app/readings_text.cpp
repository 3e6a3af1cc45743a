#include "app/readings_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/json_text.h"
#include "kelvin/core/text.h"
#include "kelvin/report/definition_text.h"
#include "kelvin/report/detection_table.h"
#include "kelvin/report/layer_table.h"
#include "kelvin/report/reading_places.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Reading& reading) {
  auto fields = fields_of(reading);
  fields["definition"] = reading.definition;
  return fields;
}

Table table_of(const Readings& readings, bool is_for_people) {
  const auto shown = used_places(readings);
  Table table{.columns = {{"name"}}};
  for (const auto& column : shown) table.columns.push_back({column.name});
  table.columns.push_back({"value", Alignment::right});
  const bool has_intervals =
      !is_for_people && std::any_of(readings.begin(), readings.end(), [](const Reading& reading) {
        return reading.interval.has_value();
      });
  if (has_intervals) {
    table.columns.push_back({"low"});
    table.columns.push_back({"high"});
  }
  table.columns.push_back({"definition"});
  for (const auto& reading : readings) {
    std::vector<std::string> row = {reading.name};
    for (const auto& column : shown) row.push_back(column.cell(reading));
    row.push_back(is_for_people ? short_number(reading.value, 5)
                                : fmt::format("{}", reading.value));
    if (has_intervals) {
      const auto& interval = reading.interval;
      row.push_back(interval ? fmt::format("{}", interval->low) : "");
      row.push_back(interval ? fmt::format("{}", interval->high) : "");
    }
    row.push_back(is_for_people ? definition_text(reading.definition)
                                : json_text(reading.definition));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Detectors and layers as tables of their own, everything else with its definition beside it.
std::string text_for_people(const Readings& readings, TableFormat format) {
  const auto detection = detection_tables(readings);
  const auto layers = layer_tables(detection.rest);
  Readings whole;
  for (const auto& reading : layers.rest) {
    if (!reading.index) whole.push_back(reading);
  }
  std::string text;
  if (!whole.empty()) text += render(table_of(whole, /*is_for_people=*/true), format);
  for (const auto* tables : {&detection.tables, &layers.tables}) {
    for (const auto& table : *tables) text += (text.empty() ? "" : "\n") + render(table, format);
  }
  if (!layers.meanings.empty()) text += "\n";
  for (const auto& meaning : layers.meanings) text += meaning + "\n";
  const auto curves = layers.rest.size() - whole.size();
  if (curves > 0) {
    text += fmt::format("\n{} values of curves are left out; -o json prints them\n", curves);
  }
  if (layers.left_out > 0) {
    text += fmt::format(
        "\n{} readings of layers by other definitions are left out; -o json "
        "prints them\n",
        layers.left_out);
  }
  return text;
}

}  // namespace

std::string readings_text(const Readings& readings, TableFormat format) {
  if (format == TableFormat::json) {
    Json document;
    document["readings"] = Json::array();
    for (const auto& reading : readings) document["readings"].push_back(json_of(reading));
    return json_text(document, 1) + "\n";
  }
  if (format == TableFormat::jsonl) {
    std::string lines;
    for (const auto& reading : readings) lines += json_text(json_of(reading)) + "\n";
    return lines;
  }
  if (format == TableFormat::csv)
    return render(table_of(readings, /*is_for_people=*/false), format);
  return text_for_people(readings, format);
}

}  // namespace kelvin
