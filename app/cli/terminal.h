#pragma once

#include <cstddef>
#include <string>

#include "kelvin/report/tables/table.h"

namespace kelvin {

// Columns that lines on stdout may take: $COLUMNS, else those of the terminal, else 80.
size_t stdout_columns();

// On stdout; as text it fits the terminal.
void print_table(const Table& table, TableFormat format);
// A line of text, in as many as the terminal needs.
void print_paragraph(const std::string& text);
// The same on stderr, for remarks; see print_for_people.
void print_remark(const std::string& text);

}  // namespace kelvin
