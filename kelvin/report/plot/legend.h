#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kelvin/report/plot/figure.h"

namespace kelvin {

// The names of what is drawn: keys above the plot, or labels at the ends of the lines.

struct LegendEntry {
  std::string label = {};
  int64_t colour = 0;
  Stroke stroke = Stroke::solid;
  bool is_area = false;  // a filled key instead of a line
};

struct Legend {
  std::string svg = {};
  double height = 0;
};

// Keys in rows at the top of the figure.
Legend legend(const std::vector<LegendEntry>& entries);

// Labels at the ends of the lines are read faster than a legend, where they fit: few short ones,
// all lines ending at the right edge, and not all at the same height.
bool fits_end_labels(const LineFigure& figure, const Scale& x, const Scale& y);
// How much room they need to the right of the plot.
double end_label_margin(const LineFigure& figure);
std::string end_labels(const LineFigure& figure, const Scale& x, const Scale& y);

}  // namespace kelvin
