#pragma once

#include "app/verb.h"

namespace kelvin {

// What `kelvin data` can do: `kelvin data NAME ...`.
Registry<VerbEntry>& data_jobs();

}  // namespace kelvin
