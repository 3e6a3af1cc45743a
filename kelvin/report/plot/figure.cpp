#include "kelvin/report/plot/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kelvin/report/plot/axes.h"
#include "kelvin/report/plot/legend.h"
#include "kelvin/report/plot/marks.h"
#include "kelvin/report/plot/svg.h"

namespace kelvin {
namespace {

std::vector<LegendEntry> legend_entries(const LineFigure& figure) {
  std::vector<LegendEntry> entries;
  for (const auto& series : figure.series) {
    if (series.label.empty()) continue;
    entries.push_back({.label = series.label, .colour = series.colour, .stroke = series.stroke});
  }
  return entries;
}

std::string no_data(double x, double y) { return svg_text(x, y, "note mid", "no data"); }

}  // namespace

std::string svg_of(const LineFigure& figure) {
  PlotRange x_data;
  PlotRange y_data;
  for (const auto& series : figure.series) {
    for (const auto& segment : segments_of(figure, series)) {
      for (const auto& point : segment) {
        x_data.include(point.x);
        y_data.include(point.y);
        if (!has_band(point, figure.y)) continue;
        y_data.include(point.low);
        y_data.include(point.high);
      }
    }
  }
  const bool is_empty = x_data.is_empty();
  auto x_range = padded_range(figure.x, x_data, 0.0);
  if (!figure.x.names.empty()) {
    x_range = {.low = -0.3, .high = static_cast<double>(figure.x.names.size()) - 0.7};
  }
  const auto y_range = padded_range(figure.y, y_data, 0.06);

  const bool has_end_labels =
      fits_end_labels(figure, Scale(figure.x, x_range, kLeftMargin, kFigureWidth - kRightMargin),
                      Scale(figure.y, y_range, kFigureHeight - kBottomMargin, kTopMargin));
  const auto keys = has_end_labels ? Legend{} : legend(legend_entries(figure));
  const double right =
      has_end_labels ? std::max(kRightMargin, end_label_margin(figure)) : kRightMargin;

  const double bottom = kFigureHeight - bottom_margin(figure.x, kFigureWidth - right - kLeftMargin);
  const double top = kTopMargin + keys.height;
  const Scale x(figure.x, x_range, kLeftMargin, kFigureWidth - right);
  const Scale y(figure.y, y_range, bottom, top);

  std::string svg = svg_opening(figure.title, figure.description) + keys.svg;
  svg += y_axis(figure.y, y, x.start(), x.end()) + x_axis(figure.x, x, bottom);
  svg += guides_svg(figure, x, y);
  // A viewport of its own clips what lies outside of the axes, a little air for dots included.
  svg += fmt::format(
      "<svg x=\"{0:.1f}\" y=\"{1:.1f}\" width=\"{2:.1f}\" height=\"{3:.1f}\" viewBox=\"{0:.1f} "
      "{1:.1f} {2:.1f} {3:.1f}\">\n",
      x.start() - 4, y.end() - 4, x.end() - x.start() + 8, y.start() - y.end() + 8);
  for (const auto& series : figure.series) svg += series_svg(series, figure, x, y);
  svg += "</svg>\n" + marks_svg(figure, x, y);
  if (has_end_labels) svg += end_labels(figure, x, y);
  if (is_empty) svg += no_data((x.start() + x.end()) / 2, (top + bottom) / 2);
  return svg + "</svg>\n";
}

std::vector<Bin> bins_of(const HistogramFigure& figure) {
  std::vector<double> all;
  for (const auto& population : figure.populations) {
    std::copy_if(population.values.begin(), population.values.end(), std::back_inserter(all),
                 [](double value) { return std::isfinite(value); });
  }
  if (all.empty() || figure.bins < 1) return {};
  std::sort(all.begin(), all.end());
  double low = all[all.size() / 1000];
  double high = all[all.size() - 1 - all.size() / 1000];
  if (low == high) {
    low -= 0.5;
    high += 0.5;
  }

  const auto count = static_cast<size_t>(figure.bins);
  const double width = high / static_cast<double>(count) - low / static_cast<double>(count);
  std::vector<Bin> bins(count);
  // A weighted mean does not overflow where a sum of widths would.
  const auto edge = [&](size_t i) {
    const double fraction = static_cast<double>(i) / static_cast<double>(count);
    return low * (1 - fraction) + high * fraction;
  };
  for (size_t i = 0; i < count; ++i) {
    bins[i] = {.low = edge(i),
               .high = edge(i + 1),
               .fractions = std::vector<double>(figure.populations.size(), 0.0)};
  }
  for (size_t p = 0; p < figure.populations.size(); ++p) {
    const auto& values = figure.populations[p].values;
    const auto finite = std::count_if(values.begin(), values.end(),
                                      [](double value) { return std::isfinite(value); });
    for (const double value : values) {
      if (!std::isfinite(value)) continue;
      const double place = std::clamp((value - low) / width, 0.0, static_cast<double>(count) - 1);
      bins[static_cast<size_t>(place)].fractions[p] += 1 / static_cast<double>(finite);
    }
  }
  return bins;
}

std::string svg_of(const HistogramFigure& figure) {
  const auto bins = bins_of(figure);
  const Axis x_axis_of{.label = figure.x_label};
  const Axis y_axis_of{.label = "share of samples", .is_percent = true, .low = 0.0};
  PlotRange x_data;
  PlotRange y_data;
  for (const auto& bin : bins) {
    x_data.include(bin.low);
    x_data.include(bin.high);
    for (const double fraction : bin.fractions) y_data.include(fraction);
  }

  std::vector<LegendEntry> entries;
  for (const auto& population : figure.populations) {
    entries.push_back({.label = population.label, .colour = population.colour, .is_area = true});
  }
  const auto keys = legend(entries);
  const double bottom = kFigureHeight - kBottomMargin;
  const double top = kTopMargin + keys.height;
  const Scale x(x_axis_of, padded_range(x_axis_of, x_data, 0.0), kLeftMargin,
                kFigureWidth - kRightMargin);
  const Scale y(y_axis_of, padded_range(y_axis_of, y_data, 0.04), bottom, top);

  std::string svg = svg_opening(figure.title, figure.description) + keys.svg;
  svg += y_axis(y_axis_of, y, x.start(), x.end()) + x_axis(x_axis_of, x, bottom);
  svg += bins_svg(bins, figure.populations, x, y);
  if (bins.empty()) svg += no_data((x.start() + x.end()) / 2, (top + bottom) / 2);
  return svg + "</svg>\n";
}

}  // namespace kelvin
