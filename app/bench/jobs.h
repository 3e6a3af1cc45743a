#pragma once

#include "app/verb.h"

namespace kelvin {

// What `kelvin bench` can do: `kelvin bench NAME ...`.
Registry<VerbEntry>& bench_jobs();

}  // namespace kelvin
