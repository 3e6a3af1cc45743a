#pragma once

#include <vector>

#include "kelvin/report/figures/figure_input.h"

namespace kelvin {

// Over the layers of a network: accuracies of probes, ranks, alignment, gradients.
void add_layer_figures(const FigureInput& in, std::vector<RunFigure>& figures);

}  // namespace kelvin
