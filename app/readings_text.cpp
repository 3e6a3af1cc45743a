#include "app/readings_text.h"

#include <fmt/format.h>

#include "kelvin/core/text.h"
#include "kelvin/report/reading_places.h"
#include "kelvin/report/run_figures.h"

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
  table.columns.push_back({"definition"});
  for (const auto& reading : readings) {
    std::vector<std::string> row = {reading.name};
    for (const auto& column : shown) row.push_back(column.cell(reading));
    row.push_back(is_for_people ? short_number(reading.value, 5)
                                : fmt::format("{}", reading.value));
    row.push_back(is_for_people ? definition_text(reading.definition) : reading.definition.dump());
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string text_for_people(const Readings& readings, TableFormat format) {
  Readings whole;
  for (const auto& reading : readings) {
    if (!reading.index) whole.push_back(reading);
  }
  auto text = render(table_of(whole, /*is_for_people=*/true), format);
  if (const auto hidden = readings.size() - whole.size(); hidden > 0) {
    text += fmt::format("\n{} values of curves are left out; -o json prints them\n", hidden);
  }
  return text;
}

}  // namespace

std::string readings_text(const Readings& readings, TableFormat format) {
  if (format == TableFormat::json) {
    Json document;
    document["readings"] = Json::array();
    for (const auto& reading : readings) document["readings"].push_back(json_of(reading));
    return document.dump(1) + "\n";
  }
  if (format == TableFormat::jsonl) {
    std::string lines;
    for (const auto& reading : readings) lines += json_of(reading).dump() + "\n";
    return lines;
  }
  if (format == TableFormat::csv)
    return render(table_of(readings, /*is_for_people=*/false), format);
  return text_for_people(readings, format);
}

}  // namespace kelvin
