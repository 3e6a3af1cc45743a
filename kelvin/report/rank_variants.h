#pragma once

#include <vector>

#include "kelvin/report/comparison.h"

namespace kelvin {

// The solution rank by each definition it was measured with (threshold, with or
// without the common shift, with or without bias): a row per definition, a
// column per group.  No rows if nothing was measured.
Table rank_variants_table(const std::vector<Run>& runs, const Comparison& comparison);

}  // namespace kelvin
