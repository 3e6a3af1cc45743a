#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kelvin {

enum class Alignment { left, right };

struct Column {
  std::string name;
  Alignment alignment = Alignment::left;  // right for numbers
};

// Cells are texts: numbers come already formatted.  A row may be shorter than
// the columns; the missing cells are empty.
struct Table {
  std::string title = {};
  std::vector<Column> columns = {};
  std::vector<std::vector<std::string>> rows = {};
  // Sentences that explain what signs in the cells mean; printed below it for people.
  std::vector<std::string> notes = {};
};

// Behind a rank that is as high as the width of a layer lets it be.
inline constexpr const char* kDagger = "†";

// Empty if the row is shorter.
std::string cell_of(const std::vector<std::string>& row, size_t column);

enum class TableFormat { text, markdown, csv, json, jsonl };

// "text", "md" or "markdown", "csv", "json", "jsonl"; anything else is an Error naming these.
TableFormat table_format(const std::string& name);

// Whether people read it; the others are for programs.
inline bool is_for_people(TableFormat format) {
  return format == TableFormat::text || format == TableFormat::markdown;
}

// Only text has a width: how many columns its lines may take, any if it is 0.
std::string render(const Table& table, TableFormat format, size_t width = 0);

// Columns aligned by what a terminal shows, not by bytes; see text_table.h.
std::string text_of(const Table& table, size_t width = 0);
std::string markdown_of(const Table& table);
// RFC 4180 with \n line ends; title and notes are left out, as they are in JSON.
std::string csv_of(const Table& table);
// An array of objects with the columns as keys.  A cell of a right-aligned
// column that is a number becomes one, an empty cell null.
std::string json_of(const Table& table);
// The same objects, one per line.
std::string jsonl_of(const Table& table);
// A <table> element, everything escaped, without the notes: a page has its own place for them.
std::string html_of(const Table& table);

}  // namespace kelvin
