#pragma once

#include "app/cli/verb.h"

namespace kelvin {

// What `kelvin theory` can do: `kelvin theory NAME ...`.
Registry<VerbEntry>& theory_subcommands();

}  // namespace kelvin
