#pragma once

#include <cstddef>
#include <string>

#include "kelvin/report/table.h"

namespace kelvin {

// The table as aligned text of lines of at most `width` columns; 0 is any width.  Where it is
// wider, texts and headers go over several lines; where that is not enough, as many columns as fit
// make a table, and the others follow below, each time beside the first column.  Numbers are never
// broken.
std::string fitted_text(const Table& table, size_t width);

}  // namespace kelvin
