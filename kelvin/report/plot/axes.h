#pragma once

#include <string>

#include "kelvin/report/plot/scale.h"

namespace kelvin {

std::string x_axis(const Axis& axis, const Scale& x, double bottom);
// With the lines of the grid.
std::string y_axis(const Axis& axis, const Scale& y, double left, double right);

// The room below a plot of this width: names of layers that are turned need more.
double bottom_margin(const Axis& axis, double width);

}  // namespace kelvin
