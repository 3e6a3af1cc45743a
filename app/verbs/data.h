#pragma once

#include <string>

#include "app/cli/verb.h"

namespace kelvin {

// What `kelvin data` can do: `kelvin data NAME ...`.
Registry<VerbEntry>& data_subcommands();

// Drawn by kelvin itself, so that there are no files to fetch or verify.
bool is_embedded(const std::string& dataset);

}  // namespace kelvin
