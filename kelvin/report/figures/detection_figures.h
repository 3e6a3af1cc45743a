#pragma once

#include <vector>

#include "kelvin/report/figures/figure_input.h"

namespace kelvin {

// How other data are told apart: scores and ROC curves of a few detectors, and detection against
// generalisation over the temperature.
void add_detection_figures(const FigureInput& in, std::vector<RunFigure>& figures);

}  // namespace kelvin
