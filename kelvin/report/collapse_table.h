#pragma once

#include <vector>

#include "kelvin/report/table.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {

// For scripts, a row per run: when its sampled training images were all right and when its rank had
// come down (CollapseSteps).  A cell is empty where it never happened or was not measured.
Table collapse_table(const std::vector<Run>& runs);

}  // namespace kelvin
