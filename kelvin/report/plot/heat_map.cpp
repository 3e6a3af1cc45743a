#include "kelvin/report/plot/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kelvin/report/plot/axes.h"
#include "kelvin/report/plot/svg.h"

namespace kelvin {
namespace {

// Cells of one shade are one path, which is a tenth of as many rectangles.
constexpr size_t kShades = 20;

size_t heat_columns(const HeatMapFigure& figure) {
  size_t columns = 0;
  for (const auto& row : figure.rows) columns = std::max(columns, row.size());
  return columns;
}

// 0 is not drawn.
size_t shade_of(double value) {
  if (!std::isfinite(value)) return 0;
  return static_cast<size_t>(std::llround(std::clamp(value, 0.0, 1.0) * kShades));
}

Axis counted_places(const std::string& label, size_t count) {
  return {.label = label,
          .is_whole = true,
          .low = 0.5,
          .high = static_cast<double>(std::max<size_t>(1, count)) + 0.5};
}

}  // namespace

std::string svg_of(const HeatMapFigure& figure) {
  const auto x_axis_of = counted_places(figure.x_label, heat_columns(figure));
  const auto y_axis_of = counted_places(figure.y_label, figure.rows.size());
  const double bottom = kFigureHeight - kBottomMargin;
  const Scale x(x_axis_of, {.low = *x_axis_of.low, .high = *x_axis_of.high}, kLeftMargin,
                kFigureWidth - kRightMargin);
  // Rows count downwards.
  const Scale y(y_axis_of, {.low = *y_axis_of.low, .high = *y_axis_of.high}, kTopMargin, bottom);
  std::array<std::string, kShades + 1> paths;
  const double width = x(2) - x(1);
  const double height = y(2) - y(1);
  for (size_t row = 0; row < figure.rows.size(); ++row) {
    for (size_t column = 0; column < figure.rows[row].size(); ++column) {
      paths.at(shade_of(figure.rows[row][column])) +=
          fmt::format("M{:.1f} {:.1f}h{:.1f}v{:.1f}h-{:.1f}z", x(static_cast<double>(column) + 0.5),
                      y(static_cast<double>(row) + 0.5), width, height, width);
    }
  }
  auto svg = svg_opening(figure.title, figure.description);
  svg += x_axis(x_axis_of, x, bottom) + y_axis(y_axis_of, y, x.start(), x.end());
  for (size_t shade = 1; shade <= kShades; ++shade) {
    if (paths.at(shade).empty()) continue;
    svg += fmt::format("<path class=\"cell\" fill-opacity=\"{:.2f}\" d=\"{}\"/>\n",
                       static_cast<double>(shade) / kShades, paths.at(shade));
  }
  return svg + "</svg>\n";
}

}  // namespace kelvin
