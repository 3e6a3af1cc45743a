#include "kelvin/report/plot/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "kelvin/core/text.h"
#include "kelvin/report/page/html.h"

namespace kelvin {
namespace {

constexpr double kWidth = 540;
constexpr double kHeight = 330;
constexpr double kTop = 14;
constexpr double kLeft = 58;
constexpr double kBottom = 46;
constexpr double kRight = 16;
constexpr double kLegendRow = 18;
constexpr double kLetter = 6.4;           // width of an average letter of the labels
constexpr double kBold = 1.12;            // how much wider bold letters are
constexpr double kLabelHeight = 14;       // two labels closer than this would overlap
constexpr size_t kMostHoverPoints = 160;  // per series; more would only fatten the page

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool is_empty() const { return low > high; }
};

bool is_shown(double value, const Axis& axis) {
  return std::isfinite(value) && (!axis.is_log || value > 0);
}

// Where data values lie on the page.
class Scale {
 public:
  Scale(const Axis& axis, Range range, double start, double end)
      : is_log_(axis.is_log), range_(range), start_(start), end_(end) {}

  double operator()(double value) const {
    const double low = position(range_.low);
    const double high = position(range_.high);
    // Halves first: the difference of two large numbers may overflow.
    const double share = (position(value) / 2 - low / 2) / (high / 2 - low / 2);
    return start_ + std::clamp(share, -10.0, 10.0) * (end_ - start_);
  }

  const Range& range() const { return range_; }
  double start() const { return start_; }
  double end() const { return end_; }

 private:
  double position(double value) const { return is_log_ ? std::log10(value) : value; }

  bool is_log_;
  Range range_;
  double start_;
  double end_;
};

// The axis' own limits win; else the data with some air, and never of width zero.
Range padded_range(const Axis& axis, Range data, double air) {
  if (data.is_empty())
    data = axis.is_log ? Range{.low = 0.1, .high = 10} : Range{.low = 0, .high = 1};
  if (axis.is_log) {
    const double factor = data.low == data.high ? 2 : std::pow(data.high / data.low, air);
    data = {.low = data.low / factor, .high = data.high * factor};
    data.low = std::max(data.low, std::numeric_limits<double>::min());
    data.high = std::min(data.high, std::numeric_limits<double>::max());
  } else {
    const double extent = data.high / 2 - data.low / 2;
    const double margin = extent > 0 ? 2 * air * extent : std::max(std::abs(data.low) * 0.1, 0.5);
    constexpr double kLargest = std::numeric_limits<double>::max();
    data = {.low = std::max(data.low - margin, -kLargest),
            .high = std::min(data.high + margin, kLargest)};
  }
  if (axis.low) data.low = *axis.low;
  if (axis.high) data.high = *axis.high;
  if (!(data.low < data.high)) data.high = axis.is_log ? data.low * 10 : data.low + 1;
  return data;
}

std::string superscript(int64_t number) {
  static const std::array<const char*, 10> digits = {"⁰", "¹", "²", "³", "⁴",
                                                     "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = number < 0 ? "⁻" : "";
  for (const char digit : std::to_string(std::abs(number))) {
    text += digits.at(static_cast<size_t>(digit - '0'));
  }
  return text;
}

std::string number_text(double value) {
  const auto text = short_number(value, 4);
  return text.starts_with("-") ? "−" + text.substr(1) : text;
}

std::string tick_text(double value, const Axis& axis) {
  if (axis.is_percent) return number_text(std::round(value * 1e6) / 1e4) + " %";
  if (axis.is_log && value > 0) {
    const double exponent = std::log10(value);
    const bool is_power = std::abs(exponent - std::round(exponent)) < 1e-9;
    if (is_power && std::abs(exponent) > 2.5) {
      return "10" + superscript(static_cast<int64_t>(std::llround(exponent)));
    }
  }
  return number_text(value);
}

std::string hover_text(double value, const Axis& axis) {
  if (!axis.names.empty()) {
    const auto place = static_cast<size_t>(std::max(value, 0.0));
    if (place < axis.names.size()) return axis.names[place];
  }
  return axis.is_percent ? fmt::format("{:.1f} %", 100 * value) : number_text(value);
}

std::vector<double> ticks_of(const Axis& axis, const Range& range, int64_t count) {
  if (axis.is_log) return log_ticks(range.low, range.high, count);
  auto ticks = linear_ticks(range.low, range.high, count);
  if (axis.is_whole) std::erase_if(ticks, [](double tick) { return tick != std::round(tick); });
  return ticks;
}

double text_width(std::string_view text) {
  const auto letters = std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  });
  return kLetter * static_cast<double>(letters);
}

std::string colour_class(int64_t colour) { return fmt::format("c{}", colour % 8); }

std::string text_at(double x, double y, const char* classes, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, classes,
                     escape_html(text));
}

std::string line_at(double x1, double y1, double x2, double y2, const char* classes) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2,
      y2, classes);
}

std::string opening(const std::string& title, const std::string& description) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "class=\"figure\">\n<title>{}</title>\n<desc>{}</desc>\n",
      kWidth, kHeight, escape_html(title), escape_html(description));
}

double widest_name(const Axis& axis) {
  double widest = 0;
  for (const auto& name : axis.names) widest = std::max(widest, text_width(name));
  return widest;
}

bool has_turned_names(const Axis& axis, double width) {
  return widest_name(axis) + 4 >
         width / static_cast<double>(std::max<size_t>(axis.names.size(), 1));
}

std::string x_axis(const Axis& axis, const Scale& x, double bottom) {
  std::string svg = line_at(x.start(), bottom, x.end(), bottom, "axis");
  if (axis.names.empty()) {
    for (const double tick : ticks_of(axis, x.range(), 6)) {
      svg += line_at(x(tick), bottom, x(tick), bottom + 4, "axis");
      svg += text_at(x(tick), bottom + 17, "tick mid", tick_text(tick, axis));
    }
  } else {
    // Names need room: turned where they are too long, and then every n-th one if there are many.
    const bool is_turned = has_turned_names(axis, x.end() - x.start());
    const double room = (x.end() - x.start()) / static_cast<double>(axis.names.size());
    const auto step = is_turned ? static_cast<size_t>(std::max(1.0, std::ceil(13 / room))) : 1;
    for (size_t i = 0; i < axis.names.size(); i += step) {
      const double at = x(static_cast<double>(i));
      svg += line_at(at, bottom, at, bottom + 4, "axis");
      if (!is_turned) {
        svg += text_at(at, bottom + 17, "tick mid", axis.names[i]);
      } else {
        svg += fmt::format(
            "<text transform=\"translate({:.1f} {:.1f}) rotate(-40)\" class=\"tick "
            "end\">{}</text>\n",
            at + 4, bottom + 13, escape_html(axis.names[i]));
      }
    }
  }
  return svg + text_at((x.start() + x.end()) / 2, kHeight - 8, "label mid", axis.label);
}

std::string y_axis(const Axis& axis, const Scale& y, double left, double right) {
  std::string svg;
  for (const double tick : ticks_of(axis, y.range(), 5)) {
    svg += line_at(left, y(tick), right, y(tick), "grid");
    svg += text_at(left - 7, y(tick) + 4, "tick end", tick_text(tick, axis));
  }
  return svg + fmt::format(
                   "<text transform=\"translate(14 {:.1f}) rotate(-90)\" class=\"label "
                   "mid\">{}</text>\n",
                   (y.start() + y.end()) / 2, escape_html(axis.label));
}

struct LegendEntry {
  std::string label;
  int64_t colour = 0;
  Stroke stroke = Stroke::solid;
  bool is_area = false;
};

// Rows of keys from `left` on; tells how many rows it took.
std::string legend(const std::vector<LegendEntry>& entries, double left, int64_t& rows) {
  std::string svg;
  double x = left;
  rows = entries.empty() ? 0 : 1;
  for (const auto& entry : entries) {
    const double width = 30 + text_width(entry.label) + 16;
    if (x + width > kWidth && x > left) {
      x = left;
      ++rows;
    }
    const double y = kTop + kLegendRow * static_cast<double>(rows - 1);
    const auto colour = colour_class(entry.colour);
    if (entry.is_area) {
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"22\" height=\"10\" class=\"area {}\"/>\n", x,
          y - 6, colour);
    } else {
      const auto classes = "line " + colour + (entry.stroke == Stroke::dashed ? " dashed" : "");
      svg += line_at(x, y, x + 22, y, classes.c_str());
    }
    svg += text_at(x + 28, y + 4, "key", entry.label);
    x += width;
  }
  return svg;
}

// The parts of a series between its gaps.
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
  const size_t step = segment.size() / kMostHoverPoints + 1;
  for (size_t i = 0; i < segment.size(); i += step) {
    const auto& point = segment[i];
    auto note = join_lines({series.label, series.detail});
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

std::string series_svg(const Series& series, const LineFigure& figure, const Scale& x,
                       const Scale& y) {
  std::string bands;
  std::string lines;
  std::string dots;
  for (const auto& segment : segments_of(figure, series)) {
    bands += band_of(segment, figure, x, y, series.colour);
    std::string path;
    for (const auto& point : segment) path += fmt::format("{:.1f},{:.1f} ", x(point.x), y(point.y));
    lines += "<polyline class=\"line " + colour_class(series.colour) +
             (series.stroke == Stroke::dashed ? " dashed" : "") + "\" points=\"" + path + "\"/>\n";
    dots += hover_points(segment, series, figure, x, y);
  }
  // A single point has no line to be seen by.
  const bool is_point = series.points.size() == 1;
  return bands + lines + (is_point ? "<g class=\"single\">\n" + dots + "</g>\n" : dots);
}

struct EndLabel {
  std::string text;
  int64_t colour = 0;
  double y = 0;
};

// Pushes labels apart that would overlap, and back up what falls below the plot.
void spread(std::vector<EndLabel>& labels, double top, double bottom) {
  std::sort(labels.begin(), labels.end(),
            [](const EndLabel& a, const EndLabel& b) { return a.y < b.y; });
  double above = top - kLabelHeight;
  for (auto& label : labels) {
    label.y = std::max(label.y, above + kLabelHeight);
    above = label.y;
  }
  double below = bottom + kLabelHeight;
  for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
    label->y = std::min(label->y, below - kLabelHeight);
    below = label->y;
  }
}

std::vector<EndLabel> end_labels(const LineFigure& figure, const Scale& y) {
  std::vector<EndLabel> labels;
  for (const auto& series : figure.series) {
    const auto segments = segments_of(figure, series);
    if (series.label.empty() || segments.empty()) continue;
    labels.push_back(
        {.text = series.label, .colour = series.colour, .y = y(segments.back().back().y)});
  }
  return labels;
}

// Labels at the ends of the lines are read faster than a legend, where they fit: few short ones,
// all lines ending at the right edge, and not all at the same height.
bool fits_end_labels(const LineFigure& figure, const Scale& x, const Scale& y) {
  constexpr double kFarthestShift = 26;
  for (const auto& series : figure.series) {
    if (series.label.empty()) continue;
    const auto segments = segments_of(figure, series);
    if (segments.empty() || text_width(series.label) > 19 * kLetter) return false;
    const double gap = x.end() - x(segments.back().back().x);
    if (!(gap < 0.06 * (x.end() - x.start()))) return false;
  }
  auto labels = end_labels(figure, y);
  const auto wanted = labels;
  spread(labels, y.end() + 4, y.start());
  for (const auto& label : labels) {
    const bool is_near = std::any_of(wanted.begin(), wanted.end(), [&](const EndLabel& other) {
      return other.text == label.text && std::abs(other.y - label.y) < kFarthestShift;
    });
    if (!is_near) return false;
  }
  return !labels.empty() && labels.size() <= 6;
}

std::string end_labels_svg(const LineFigure& figure, const Scale& x, const Scale& y) {
  auto labels = end_labels(figure, y);
  spread(labels, y.end() + 4, y.start());
  std::string svg;
  for (const auto& label : labels) {
    const auto classes = "key ink " + colour_class(label.colour);
    svg += text_at(x.end() + 6, label.y + 4, classes.c_str(), label.text);
  }
  return svg;
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
      svg += line_at(at, y.end(), at, y.start(), "guide");
      svg += text_at(at + (is_left ? -5 : 5), y.end() + 11, is_left ? "note end" : "note",
                     guide.label);
    } else {
      const double at = y(guide.value);
      svg += line_at(x.start(), at, x.end(), at, "guide");
      svg += text_at(x.start() + 5, at - 4, "note", guide.label);
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
    svg += text_at(x(mark.x), y(mark.y) + (is_high ? 22 : -11), classes.c_str(), mark.label);
  }
  return svg;
}

// Turned names of layers need more room below the plot.
double bottom_margin(const Axis& axis, double width) {
  return kBottom + (has_turned_names(axis, width) ? std::min(0.62 * widest_name(axis), 90.0) : 0);
}

std::string no_data(double x, double y) { return text_at(x, y, "note mid", "no data"); }

}  // namespace

std::vector<double> linear_ticks(double low, double high, int64_t count) {
  const double span = high - low;
  if (!std::isfinite(span) || span <= 0 || count < 1) return {};
  const double rough = span / static_cast<double>(count);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= rough * 0.999) {
      step = factor * power;
      break;
    }
  }
  if (!(step > 0)) return {};
  std::vector<double> ticks;
  const double first = std::ceil(low / step - 1e-9);
  for (int64_t i = 0; i <= 2 * count + 2; ++i) {
    const double tick = (first + static_cast<double>(i)) * step;
    if (tick > high + 1e-9 * span) break;
    // Through decimals, so that 0.30000000000000004 is 0.3.
    ticks.push_back(std::stod(fmt::format("{:.12g}", tick)));
  }
  return ticks;
}

std::vector<double> log_ticks(double low, double high, int64_t count) {
  if (!(low > 0) || !(high > low) || !std::isfinite(high) || count < 1) return {};
  const auto first = static_cast<int64_t>(std::floor(std::log10(low)));
  const auto last = static_cast<int64_t>(std::floor(std::log10(high)));
  const int64_t step = std::max<int64_t>(1, (last - first + count) / (count + 1));
  const bool is_short = std::log10(high / low) < 2;
  std::vector<double> ticks;
  for (int64_t exponent = first; exponent <= last; ++exponent) {
    if (exponent % step != 0) continue;
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && !is_short) break;
      // Division keeps 1e-3 exact where a power of 0.1 would not.
      const double power = std::pow(10.0, static_cast<double>(std::abs(exponent)));
      const double tick = exponent < 0 ? factor / power : factor * power;
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push_back(tick);
    }
  }
  return ticks;
}

int64_t palette_colour(size_t index, size_t count) {
  constexpr size_t kOrdered = 6;
  if (count <= 1) return 0;
  if (count > kOrdered) return static_cast<int64_t>(index % 7);
  return std::llround(static_cast<double>(index * (kOrdered - 1)) / static_cast<double>(count - 1));
}

std::string svg_of(const LineFigure& figure) {
  Range x_data;
  Range y_data;
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
      fits_end_labels(figure, Scale(figure.x, x_range, kLeft, kWidth - kRight),
                      Scale(figure.y, y_range, kHeight - kBottom, kTop));
  double right = kRight;
  int64_t legend_rows = 0;
  std::string keys;
  if (has_end_labels) {
    for (const auto& series : figure.series) {
      right = std::max(right, kBold * text_width(series.label) + 10);
    }
  } else {
    std::vector<LegendEntry> entries;
    for (const auto& series : figure.series) {
      if (series.label.empty()) continue;
      entries.push_back({.label = series.label, .colour = series.colour, .stroke = series.stroke});
    }
    keys = legend(entries, kLeft, legend_rows);
  }

  const double bottom = kHeight - bottom_margin(figure.x, kWidth - right - kLeft);
  const double top = kTop + kLegendRow * static_cast<double>(legend_rows);
  const Scale x(figure.x, x_range, kLeft, kWidth - right);
  const Scale y(figure.y, y_range, bottom, top);

  std::string svg = opening(figure.title, figure.description) + keys;
  svg += y_axis(figure.y, y, x.start(), x.end()) + x_axis(figure.x, x, bottom);
  svg += guides_svg(figure, x, y);
  // A viewport of its own clips what lies outside of the axes, a little air for dots included.
  svg += fmt::format(
      "<svg x=\"{0:.1f}\" y=\"{1:.1f}\" width=\"{2:.1f}\" height=\"{3:.1f}\" viewBox=\"{0:.1f} "
      "{1:.1f} {2:.1f} {3:.1f}\">\n",
      x.start() - 4, y.end() - 4, x.end() - x.start() + 8, y.start() - y.end() + 8);
  for (const auto& series : figure.series) svg += series_svg(series, figure, x, y);
  svg += "</svg>\n" + marks_svg(figure, x, y);
  if (has_end_labels) svg += end_labels_svg(figure, x, y);
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
    const double share = static_cast<double>(i) / static_cast<double>(count);
    return low * (1 - share) + high * share;
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
  Range x_data;
  Range y_data;
  for (const auto& bin : bins) {
    x_data.include(bin.low);
    x_data.include(bin.high);
    for (const double fraction : bin.fractions) y_data.include(fraction);
  }

  std::vector<LegendEntry> entries;
  for (const auto& population : figure.populations) {
    entries.push_back({.label = population.label, .colour = population.colour, .is_area = true});
  }
  int64_t legend_rows = 0;
  const auto keys = legend(entries, kLeft, legend_rows);
  const double bottom = kHeight - kBottom;
  const double top = kTop + kLegendRow * static_cast<double>(legend_rows);
  const Scale x(x_axis_of, padded_range(x_axis_of, x_data, 0.0), kLeft, kWidth - kRight);
  const Scale y(y_axis_of, padded_range(y_axis_of, y_data, 0.04), bottom, top);

  std::string svg = opening(figure.title, figure.description) + keys;
  svg += y_axis(y_axis_of, y, x.start(), x.end()) + x_axis(x_axis_of, x, bottom);
  for (size_t p = 0; p < figure.populations.size() && !bins.empty(); ++p) {
    std::string points = fmt::format("{:.1f},{:.1f} ", x(bins.front().low), bottom);
    for (const auto& bin : bins) {
      const double height = y(bin.fractions[p]);
      points +=
          fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} ", x(bin.low), height, x(bin.high), height);
    }
    points += fmt::format("{:.1f},{:.1f}", x(bins.back().high), bottom);
    svg += "<polygon class=\"area " + colour_class(figure.populations[p].colour) + "\" points=\"" +
           points + "\"/>\n";
  }
  for (const auto& bin : bins) {
    std::string note = number_text(bin.low) + " to " + number_text(bin.high);
    for (size_t p = 0; p < figure.populations.size(); ++p) {
      note += fmt::format("\n{}: {:.1f} %", figure.populations[p].label, 100 * bin.fractions[p]);
    }
    svg += fmt::format(
        "<rect class=\"bin\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\">"
        "<title>{}</title></rect>\n",
        x(bin.low), top, x(bin.high) - x(bin.low), bottom - top, escape_html(note));
  }
  if (bins.empty()) svg += no_data((x.start() + x.end()) / 2, (top + bottom) / 2);
  return svg + "</svg>\n";
}

std::string figure_css() {
  // Okabe and Ito's colours, which people with any colour vision can tell apart,
  // from cold to warm; darkened or lightened where the background needs it.
  return report_assets().at("figure");
}

std::string standalone_svg(const std::string& svg) {
  const auto end = svg.find('>');
  if (end == std::string::npos) return svg;
  return svg.substr(0, end + 1) + "\n<style>" + figure_css() + "</style>" + svg.substr(end + 1);
}

}  // namespace kelvin
