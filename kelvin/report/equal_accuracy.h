#pragma once

#include <optional>
#include <vector>

#include "kelvin/report/run_values.h"

namespace kelvin {

// An undertrained network has a low rank as well.  So ranks are also compared
// along the trajectories, where all runs had the same training accuracy.

// The largest training accuracy that every run reaches after its
// initialisation; runs without metrics do not count.
std::optional<double> common_accuracy(const std::vector<Run>& runs);

// SR at the run's first epoch with at least that training accuracy.
std::optional<Observation> rank_at_accuracy(const Run& run, double accuracy);

}  // namespace kelvin
