#pragma once

#include <string>
#include <vector>

#include "kelvin/report/plot/figure.h"

namespace kelvin {

// What is drawn inside of the axes.

// The parts of a series between its gaps.
std::vector<std::vector<PlotPoint>> segments_of(const LineFigure& figure, const Series& series);

bool has_band(const PlotPoint& point, const Axis& axis);

// Bands, lines, and points that tell their values to the pointer.
std::string series_svg(const Series& series, const LineFigure& figure, const Scale& x,
                       const Scale& y);
std::string guides_svg(const LineFigure& figure, const Scale& x, const Scale& y);
std::string marks_svg(const LineFigure& figure, const Scale& x, const Scale& y);

// The outlines of the populations, and a readout for each bin.
std::string bins_svg(const std::vector<Bin>& bins, const std::vector<Population>& populations,
                     const Scale& x, const Scale& y);

}  // namespace kelvin
