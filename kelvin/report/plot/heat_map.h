#pragma once

#include <string>
#include <vector>

#include "kelvin/report/plot/scale.h"

namespace kelvin {

// Numbers from 0 to 1 as cells, the darker the larger; the first row on top.  Values beyond are
// shown as the nearer end, those that are not finite as nothing.
struct HeatMapFigure {
  std::string title = {};
  std::string description = {};
  std::string x_label = {};  // of the columns, which count from 1
  std::string y_label = {};  // of the rows, likewise
  std::vector<std::vector<double>> rows = {};
};

std::string svg_of(const HeatMapFigure& figure);

}  // namespace kelvin
