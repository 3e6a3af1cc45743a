#include "kelvin/report/tables/table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kelvin/core/check.h"
#include "kelvin/core/text.h"
#include "kelvin/report/page/html.h"
#include "kelvin/report/tables/text_table.h"

namespace kelvin {
namespace {

using Json = nlohmann::ordered_json;

// For formats that are data: only what no reader of them needs is taken away.
constexpr size_t kMostBytesOfData = size_t{1} << 20;

// Names of folders and texts of files are strangers': a line break in them would end the row, an
// escape sequence would steer the terminal.
Table shown(Table table) {
  table.title = shown_line(table.title);
  for (auto& column : table.columns) column.name = shown_line(column.name);
  for (auto& row : table.rows) {
    for (auto& cell : row) cell = shown_line(cell);
  }
  return table;
}

std::vector<std::string> names_of(const Table& table) {
  std::vector<std::string> names;
  for (const auto& column : table.columns) names.push_back(column.name);
  return names;
}

std::string markdown_cell(const std::string& text) {
  std::string escaped;
  for (const char letter : text) {
    if (letter == '|' || letter == '\\') escaped += '\\';
    if (letter == '<') {
      escaped += "&lt;";
    } else {
      escaped += letter;
    }
  }
  return escaped;
}

std::string csv_cell(const std::string& whole) {
  const auto text = shown_line(whole, kMostBytesOfData);
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + '"';
}

std::string csv_row(const std::vector<std::string>& row, size_t columns) {
  std::string line;
  for (size_t i = 0; i < columns; ++i) line += (i > 0 ? "," : "") + csv_cell(cell_of(row, i));
  return line + "\n";
}

Json json_cell(const std::string& text, Alignment alignment) {
  if (text.empty()) return nullptr;
  if (alignment == Alignment::left) return text;
  auto number = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return number.is_number() ? number : Json(text);
}

Json json_row(const Table& table, const std::vector<std::string>& row) {
  Json object = Json::object();
  for (size_t i = 0; i < table.columns.size(); ++i) {
    object[table.columns[i].name] = json_cell(cell_of(row, i), table.columns[i].alignment);
  }
  return object;
}

std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string html_cell(const char* tag, const std::string& text, Alignment alignment) {
  const std::string name = tag;
  return "<" + name + (alignment == Alignment::right ? " class=\"n\">" : ">") +
         escape_html(text.size() > kMostShownBytes ? shown_line(text) : text) + "</" + name + ">";
}

}  // namespace

std::string cell_of(const std::vector<std::string>& row, size_t column) {
  return column < row.size() ? row[column] : "";
}

TableFormat table_format(const std::string& name) {
  if (name == "text") return TableFormat::text;
  if (name == "md" || name == "markdown") return TableFormat::markdown;
  if (name == "csv") return TableFormat::csv;
  if (name == "json") return TableFormat::json;
  check(name == "jsonl", "--format: must be text, md, csv, json or jsonl, got '", name, "'");
  return TableFormat::jsonl;
}

std::string render(const Table& table, TableFormat format, size_t width) {
  switch (format) {
    case TableFormat::text:
      return text_of(table, width);
    case TableFormat::markdown:
      return markdown_of(table);
    case TableFormat::csv:
      return csv_of(table);
    case TableFormat::json:
      return json_of(table);
    case TableFormat::jsonl:
      return jsonl_of(table);
  }
  return "";
}

std::string text_of(const Table& table, size_t width) { return fitted_text(shown(table), width); }

std::string markdown_of(const Table& strange) {
  const auto table = shown(strange);
  std::string text = table.title.empty() ? "" : "**" + markdown_cell(table.title) + "**\n\n";
  text += "|";
  for (const auto& column : table.columns) text += " " + markdown_cell(column.name) + " |";
  text += "\n|";
  for (const auto& column : table.columns) {
    text += column.alignment == Alignment::right ? " ---: |" : " --- |";
  }
  text += "\n";
  for (const auto& row : table.rows) {
    text += "|";
    for (size_t i = 0; i < table.columns.size(); ++i) {
      text += " " + markdown_cell(cell_of(row, i)) + " |";
    }
    text += "\n";
  }
  for (const auto& note : table.notes) text += "\n" + markdown_cell(note) + "\n";
  return text;
}

std::string csv_of(const Table& table) {
  std::string text = csv_row(names_of(table), table.columns.size());
  for (const auto& row : table.rows) text += csv_row(row, table.columns.size());
  return text;
}

std::string json_of(const Table& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) rows.push_back(json_row(table, row));
  return dumped(rows, 1) + "\n";
}

std::string jsonl_of(const Table& table) {
  std::string text;
  for (const auto& row : table.rows) text += dumped(json_row(table, row), -1) + "\n";
  return text;
}

std::string html_of(const Table& table) {
  std::string html = "<div class=\"scroll\"><table>";
  if (!table.title.empty()) html += "<caption>" + escape_html(table.title) + "</caption>";
  html += "<thead><tr>";
  for (const auto& column : table.columns) html += html_cell("th", column.name, column.alignment);
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (size_t i = 0; i < table.columns.size(); ++i) {
      html += html_cell("td", cell_of(row, i), table.columns[i].alignment);
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace kelvin
