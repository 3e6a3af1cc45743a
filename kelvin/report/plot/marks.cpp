#include "kelvin/report/plot/marks.h"

#include <fmt/format.h>

#include "kelvin/report/page/html.h"
#include "kelvin/report/plot/svg.h"

namespace kelvin {
namespace {

constexpr size_t kMostHoverPoints = 160;  // per series; more would only fatten the page

std::string band_of(const std::vector<PlotPoint>& segment, const LineFigure& figure, const Scale& x,
                    const Scale& y, int64_t colour) {
  std::string above;
  std::string below;
  bool is_wide = false;
  for (const auto& point : segment) {
    const bool has = has_band(point, figure.y);
    is_wide |= has && point.high > point.low;
    above += fmt::format("{:.1f},{:.1f} ", x(point.x), y(has ? point.high : point.y));
    below = fmt::format("{:.1f},{:.1f} ", x(point.x), y(has ? point.low : point.y)) + below;
  }
  if (!is_wide) return "";
  return "<polygon class=\"band " + colour_class(colour) + "\" points=\"" + above + below +
         "\"/>\n";
}

std::string join_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line.empty() ? "" : line + "\n";
  return text;
}

std::string hover_points(const std::vector<PlotPoint>& segment, const Series& series,
                         const LineFigure& figure, const Scale& x, const Scale& y) {
  std::string svg;
  const bool are_alone = series.stroke == Stroke::points_alone;
  const size_t step = are_alone ? 1 : segment.size() / kMostHoverPoints + 1;
  for (size_t i = 0; i < segment.size(); i += step) {
    const auto& point = segment[i];
    auto note = join_lines({series.label, series.detail, point.name});
    note += figure.x.label + ": " + hover_text(point.x, figure.x) + "\n";
    note += figure.y.label + ": " + hover_text(point.y, figure.y);
    if (has_band(point, figure.y) && point.low < point.high) {
      note +=
          " (" + hover_text(point.low, figure.y) + " to " + hover_text(point.high, figure.y) + ")";
    }
    svg += fmt::format(
        "<circle class=\"dot {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{}</title></circle>\n",
        colour_class(series.colour), x(point.x), y(point.y), escape_html(note));
  }
  return svg;
}

}  // namespace

std::vector<std::vector<PlotPoint>> segments_of(const LineFigure& figure, const Series& series) {
  std::vector<std::vector<PlotPoint>> segments(1);
  for (const auto& point : series.points) {
    if (is_shown(point.x, figure.x) && is_shown(point.y, figure.y)) {
      segments.back().push_back(point);
    } else if (!segments.back().empty()) {
      segments.emplace_back();
    }
  }
  if (segments.back().empty()) segments.pop_back();
  return segments;
}

bool has_band(const PlotPoint& point, const Axis& axis) {
  return is_shown(point.low, axis) && is_shown(point.high, axis);
}

std::string series_svg(const Series& series, const LineFigure& figure, const Scale& x,
                       const Scale& y) {
  std::string bands;
  std::string lines;
  std::string dots;
  const bool are_alone = series.stroke == Stroke::points_alone;
  for (const auto& segment : segments_of(figure, series)) {
    dots += hover_points(segment, series, figure, x, y);
    if (are_alone) continue;
    bands += band_of(segment, figure, x, y, series.colour);
    std::string path;
    for (const auto& point : segment) path += fmt::format("{:.1f},{:.1f} ", x(point.x), y(point.y));
    lines += "<polyline class=\"line " + colour_class(series.colour) +
             (series.stroke == Stroke::dashed ? " dashed" : "") + "\" points=\"" + path + "\"/>\n";
  }
  // A single point has no line to be seen by.
  const bool is_point = are_alone || series.points.size() == 1;
  return bands + lines + (is_point ? "<g class=\"single\">\n" + dots + "</g>\n" : dots);
}

std::string guides_svg(const LineFigure& figure, const Scale& x, const Scale& y) {
  std::string svg;
  for (const auto& guide : figure.guides) {
    const auto& axis = guide.is_vertical ? figure.x : figure.y;
    const auto& range = guide.is_vertical ? x.range() : y.range();
    if (!is_shown(guide.value, axis) || guide.value < range.low || guide.value > range.high)
      continue;
    if (guide.is_vertical) {
      const double at = x(guide.value);
      const bool is_left = at > (x.start() + x.end()) / 2;
      svg += svg_line(at, y.end(), at, y.start(), "guide");
      svg += svg_text(at + (is_left ? -5 : 5), y.end() + 11, is_left ? "note end" : "note",
                      guide.label);
    } else {
      const double at = y(guide.value);
      svg += svg_line(x.start(), at, x.end(), at, "guide");
      svg += svg_text(x.start() + 5, at - 4, "note", guide.label);
    }
  }
  return svg;
}

std::string marks_svg(const LineFigure& figure, const Scale& x, const Scale& y) {
  std::string svg;
  for (const auto& mark : figure.marks) {
    if (!is_shown(mark.x, figure.x) || !is_shown(mark.y, figure.y)) continue;
    const auto colour = colour_class(mark.colour);
    svg += fmt::format("<circle class=\"ring {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"6.5\"/>\n",
                       colour, x(mark.x), y(mark.y));
    const auto classes = "key mid ink " + colour;
    const bool is_high = y(mark.y) < y.end() + 24;
    svg += svg_text(x(mark.x), y(mark.y) + (is_high ? 22 : -11), classes, mark.label);
  }
  return svg;
}

std::string bins_svg(const std::vector<Bin>& bins, const std::vector<Population>& populations,
                     const Scale& x, const Scale& y) {
  std::string svg;
  for (size_t p = 0; p < populations.size() && !bins.empty(); ++p) {
    std::string points = fmt::format("{:.1f},{:.1f} ", x(bins.front().low), y.start());
    for (const auto& bin : bins) {
      const double height = y(bin.fractions[p]);
      points +=
          fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} ", x(bin.low), height, x(bin.high), height);
    }
    points += fmt::format("{:.1f},{:.1f}", x(bins.back().high), y.start());
    svg += "<polygon class=\"area " + colour_class(populations[p].colour) + "\" points=\"" +
           points + "\"/>\n";
  }
  for (const auto& bin : bins) {
    std::string note = number_text(bin.low) + " to " + number_text(bin.high);
    for (size_t p = 0; p < populations.size(); ++p) {
      note += fmt::format("\n{}: {:.1f} %", populations[p].label, 100 * bin.fractions[p]);
    }
    svg += fmt::format(
        "<rect class=\"bin\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\">"
        "<title>{}</title></rect>\n",
        x(bin.low), y.end(), x(bin.high) - x(bin.low), y.start() - y.end(), escape_html(note));
  }
  return svg;
}

}  // namespace kelvin
