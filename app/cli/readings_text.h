#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

#include "kelvin/core/reading.h"
#include "kelvin/report/tables/table.h"

namespace kelvin {

// --definitions: of the verbs that print readings.
void declare_definitions(CLI::App& command, bool& with_definitions);

// Readings as the measuring verbs print them.  json is one object {"readings": [...]} and jsonl one
// reading per line, definitions expanded; csv has them, too.  text and md are for people: one row
// per quantity, one per layer and one per detector, without points of curves; definitions, and with
// them readings of the same name by another one, only if asked for.
std::string readings_text(const Readings& readings, TableFormat format, bool with_definitions,
                          size_t width);

}  // namespace kelvin
