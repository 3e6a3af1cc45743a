#pragma once

#include <string>

#include "kelvin/core/reading.h"
#include "kelvin/report/table.h"

namespace kelvin {

// Readings as the measuring verbs print them.  json is one object
// {"readings": [...]} and jsonl one reading per line, definitions expanded; text
// is for people and leaves out those that are parts of a curve.
std::string readings_text(const Readings& readings, TableFormat format);

}  // namespace kelvin
