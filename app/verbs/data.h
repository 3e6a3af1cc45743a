#pragma once

#include "app/cli/verb.h"

namespace kelvin {

// What `kelvin data` can do: `kelvin data NAME ...`.
Registry<VerbEntry>& data_subcommands();

}  // namespace kelvin
