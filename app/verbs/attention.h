#pragma once

#include "app/cli/verb.h"

namespace kelvin {

// What `kelvin attention` can do: `kelvin attention NAME ...`.
Registry<VerbEntry>& attention_subcommands();

}  // namespace kelvin
