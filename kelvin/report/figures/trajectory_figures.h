#pragma once

#include <vector>

#include "kelvin/report/figures/figure_input.h"

namespace kelvin {

// Over the steps of training: alignment, ranks of layers, gradients and logits, and how other data
// lie to the classes, as far as the runs' trajectories have them.
void add_trajectory_figures(const FigureInput& in, std::vector<RunFigure>& figures);

}  // namespace kelvin
