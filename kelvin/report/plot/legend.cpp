#include "kelvin/report/plot/legend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kelvin/report/plot/marks.h"
#include "kelvin/report/plot/svg.h"

namespace kelvin {
namespace {

constexpr double kLegendRow = 18;
constexpr double kBold = 1.12;       // how much wider bold letters are
constexpr double kLabelHeight = 14;  // two labels closer than this would overlap

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

std::vector<EndLabel> wanted_labels(const LineFigure& figure, const Scale& y) {
  std::vector<EndLabel> labels;
  for (const auto& series : figure.series) {
    const auto segments = segments_of(figure, series);
    if (series.label.empty() || segments.empty()) continue;
    labels.push_back(
        {.text = series.label, .colour = series.colour, .y = y(segments.back().back().y)});
  }
  return labels;
}

}  // namespace

Legend legend(const std::vector<LegendEntry>& entries) {
  Legend drawn{.height = entries.empty() ? 0 : kLegendRow};
  double x = kLeftMargin;
  double y = kTopMargin;
  for (const auto& entry : entries) {
    const double width = 30 + text_width(entry.label) + 16;
    if (x + width > kFigureWidth && x > kLeftMargin) {
      x = kLeftMargin;
      y += kLegendRow;
      drawn.height += kLegendRow;
    }
    const auto colour = colour_class(entry.colour);
    if (entry.is_area) {
      drawn.svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"22\" height=\"10\" class=\"area {}\"/>\n", x,
          y - 6, colour);
    } else if (entry.stroke == Stroke::points_alone) {
      drawn.svg += fmt::format(
          "<g class=\"single\"><circle class=\"dot {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" "
          "r=\"4\"/></g>\n",
          colour, x + 16, y);
    } else {
      const auto classes = "line " + colour + (entry.stroke == Stroke::dashed ? " dashed" : "");
      drawn.svg += svg_line(x, y, x + 22, y, classes);
    }
    drawn.svg += svg_text(x + 28, y + 4, "key", entry.label);
    x += width;
  }
  return drawn;
}

bool fits_end_labels(const LineFigure& figure, const Scale& x, const Scale& y) {
  constexpr double kFarthestShift = 26;
  for (const auto& series : figure.series) {
    if (series.stroke == Stroke::points_alone) return false;  // they have no end
    if (series.label.empty()) continue;
    const auto segments = segments_of(figure, series);
    if (segments.empty() || text_width(series.label) > 19 * kLetterWidth) return false;
    const double gap = x.end() - x(segments.back().back().x);
    if (!(gap < 0.06 * (x.end() - x.start()))) return false;
  }
  auto labels = wanted_labels(figure, y);
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

double end_label_margin(const LineFigure& figure) {
  double widest = 0;
  for (const auto& series : figure.series) widest = std::max(widest, text_width(series.label));
  return kBold * widest + 10;
}

std::string end_labels(const LineFigure& figure, const Scale& x, const Scale& y) {
  auto labels = wanted_labels(figure, y);
  spread(labels, y.end() + 4, y.start());
  std::string svg;
  for (const auto& label : labels) {
    const auto classes = "key ink " + colour_class(label.colour);
    svg += svg_text(x.end() + 6, label.y + 4, classes, label.text);
  }
  return svg;
}

}  // namespace kelvin
