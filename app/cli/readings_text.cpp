#include "app/cli/readings_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/cli/human_text.h"
#include "kelvin/core/reading.h"
#include "kelvin/core/text.h"
#include "kelvin/report/tables/detection_table.h"
#include "kelvin/report/tables/layer_table.h"
#include "kelvin/report/tables/quantity_table.h"
#include "kelvin/report/tables/run_values.h"
#include "kelvin/report/tables/text_table.h"

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

// What is said below the tables about what is not in them.
std::string left_out_text(size_t variants, size_t curves, bool has_definitions) {
  if (variants == 0 && curves == 0 && has_definitions) return "";
  std::vector<std::string> parts;
  if (variants > 0) {
    parts.push_back(
        fmt::format("{} reading{} by other definitions", variants, variants == 1 ? "" : "s"));
  }
  if (curves > 0) parts.push_back(fmt::format("{} values of curves", curves));
  const auto what = parts.empty() ? "definitions" : join(parts, " and ");
  return fmt::format("Not shown: {}; {}-o json has everything.", what,
                     has_definitions ? "" : "--definitions shows what each number means, ");
}

std::string wrapped(const std::string& text, TableFormat format, size_t width) {
  return join(wrapped_lines(text, format == TableFormat::text ? width : 0), "\n") + "\n";
}

// Empty if every number means what it says.
std::string caveat_text(const Readings& readings, TableFormat format, size_t width) {
  std::string text;
  for (const auto& sentence : caveats(readings)) text += wrapped("- " + sentence, format, width);
  return text.empty() ? "" : "Read with care:\n" + text;
}

// Detectors and layers as tables of their own.
std::string text_for_people(const Readings& readings, TableFormat format, bool with_definitions,
                            size_t width) {
  // Five intervals in a row fit no terminal.
  const auto detection = detection_tables(
      readings, format == TableFormat::text ? ShownIntervals::auroc : ShownIntervals::all);
  const auto layers = layer_tables(detection.rest);
  Readings whole;
  for (const auto& reading : layers.rest) {
    if (!reading.index) whole.push_back(reading);
  }
  std::vector<Table> tables;
  auto variants = layers.left_out;
  if (!whole.empty() && with_definitions) {
    tables.push_back(table_of(whole, /*is_for_people=*/true));
  } else if (!whole.empty()) {
    const auto quantities = quantity_table(whole);
    tables.push_back(quantities.table);
    variants += quantities.left_out;
  }
  tables.insert(tables.end(), detection.tables.begin(), detection.tables.end());
  tables.insert(tables.end(), layers.tables.begin(), layers.tables.end());
  std::vector<std::string> parts;
  std::vector<std::string> notes;  // once, below all tables
  for (auto& table : tables) {
    for (const auto& note : std::exchange(table.notes, {})) {
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
    }
    parts.push_back(render(table, format, width));
  }
  for (const auto& note : notes) parts.push_back(wrapped(note, format, width));
  if (with_definitions && !layers.meanings.empty()) {
    std::string meanings;
    for (const auto& meaning : layers.meanings) meanings += wrapped(meaning, format, width);
    parts.push_back(meanings);
  }
  const auto note = left_out_text(variants, layers.rest.size() - whole.size(), with_definitions);
  if (!note.empty()) parts.push_back(wrapped(note, format, width));
  const auto care = caveat_text(readings, format, width);
  if (!care.empty()) parts.push_back(care);
  return join(parts, "\n");
}

}  // namespace

void declare_definitions(CLI::App& command, bool& with_definitions) {
  command.add_flag("--definitions", with_definitions,
                   "also what each number means, and the same by other definitions");
}

std::string readings_text(const Readings& readings, TableFormat format, bool with_definitions,
                          size_t width) {
  if (format == TableFormat::json) {
    Json document;
    document["readings"] = Json::array();
    for (const auto& reading : readings) document["readings"].push_back(json_of(reading));
    if (const auto sentences = caveats(readings); !sentences.empty()) {
      document["caveats"] = sentences;
    }
    return json_text(document, 1) + "\n";
  }
  if (format == TableFormat::jsonl) {
    std::string lines;
    for (const auto& reading : readings) lines += json_text(json_of(reading)) + "\n";
    return lines;
  }
  if (format == TableFormat::csv)
    return render(table_of(readings, /*is_for_people=*/false), format);
  return text_for_people(readings, format, with_definitions, width);
}

}  // namespace kelvin
