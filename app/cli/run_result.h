#pragma once

#include <string>

#include "kelvin/report/tables/table.h"

namespace kelvin {

// Prints what became of the run that `verb` worked on, and returns the exit code.
int print_run_result(const std::string& verb, const std::string& run, TableFormat format);

}  // namespace kelvin
