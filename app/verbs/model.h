#pragma once

#include "app/cli/verb.h"

namespace kelvin {

// What `kelvin model` can do: `kelvin model NAME ...`.
Registry<VerbEntry>& model_subcommands();

}  // namespace kelvin
