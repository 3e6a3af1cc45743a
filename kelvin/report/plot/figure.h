#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "kelvin/report/plot/scale.h"

namespace kelvin {

// Plots as SVG: text stays text, colours follow the reader's light or dark mode,
// no script is needed to see them.  Values that are not finite (or not positive
// on a log axis) are gaps.

struct PlotPoint {
  double x = 0;
  double y = 0;
  double low = std::numeric_limits<double>::quiet_NaN();  // of the band; both or none
  double high = std::numeric_limits<double>::quiet_NaN();
  std::string name = {};  // what it stands for, where neither axis tells
};

enum class Stroke { solid, dashed, points_alone };

struct Series {
  std::string label = {};   // empty: not in the legend
  std::string detail = {};  // of a readout, where several series share a meaning: "seed 1"
  int64_t colour = 0;       // of the palette
  Stroke stroke = Stroke::solid;
  std::vector<PlotPoint> points = {};
};

// A thin line across the plot.
struct Guide {
  double value = 0;
  std::string label = {};
  bool is_vertical = false;
};

// A ring around a point, with a sign beside it.
struct Mark {
  double x = 0;
  double y = 0;
  std::string label = {};
  int64_t colour = 0;
};

struct LineFigure {
  std::string title = {};
  std::string description = {};
  Axis x = {};
  Axis y = {};
  std::vector<Series> series = {};
  std::vector<Guide> guides = {};
  std::vector<Mark> marks = {};
};

struct Population {
  std::string label = {};
  int64_t colour = 0;
  std::vector<double> values = {};
};

struct HistogramFigure {
  std::string title = {};
  std::string description = {};
  std::string x_label = {};
  std::vector<Population> populations = {};
  int64_t bins = 40;
};

// How much of each population lies in [low, high).
struct Bin {
  double low = 0;
  double high = 0;
  std::vector<double> fractions = {};
};

// Equal bins over all finite values but the outermost thousandths, which the
// outermost bins take in; empty if there are no values.
std::vector<Bin> bins_of(const HistogramFigure& figure);

std::string svg_of(const LineFigure& figure);
std::string svg_of(const HistogramFigure& figure);

}  // namespace kelvin
