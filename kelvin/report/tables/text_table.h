#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kelvin/report/tables/table.h"

namespace kelvin {

// How many columns of a terminal a text takes.  Code points: right for every sign that kelvin
// prints (±, †, κ), wrong only for wide scripts.
size_t shown_width(std::string_view text);

// The text in lines of at most `width` columns, broken between words; a word that is longer is
// broken where its parts end (after / , _ = - .), else anywhere.  At least one line; 0 is any
// width.
std::vector<std::string> wrapped_lines(std::string_view text, size_t width);

// The table as aligned text of lines of at most `width` columns; 0 is any width.  Where it is
// wider, texts and headers go over several lines; where that is not enough, as many columns as fit
// make a table, and the others follow below, each time beside the first column.  Numbers are never
// broken.
std::string fitted_text(const Table& table, size_t width);

}  // namespace kelvin
