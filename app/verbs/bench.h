#pragma once

#include "app/cli/verb.h"

namespace kelvin {

// What `kelvin bench` can do: `kelvin bench NAME ...`.
Registry<VerbEntry>& bench_subcommands();

}  // namespace kelvin
