#include "kelvin/report/plot/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kelvin/report/page/html.h"
#include "kelvin/report/plot/svg.h"

namespace kelvin {
namespace {

double widest_name(const Axis& axis) {
  double widest = 0;
  for (const auto& name : axis.names) widest = std::max(widest, text_width(name));
  return widest;
}

bool has_turned_names(const Axis& axis, double width) {
  return widest_name(axis) + 4 >
         width / static_cast<double>(std::max<size_t>(axis.names.size(), 1));
}

}  // namespace

std::string x_axis(const Axis& axis, const Scale& x, double bottom) {
  std::string svg = svg_line(x.start(), bottom, x.end(), bottom, "axis");
  if (axis.names.empty()) {
    for (const double tick : ticks_of(axis, x.range(), 6)) {
      svg += svg_line(x(tick), bottom, x(tick), bottom + 4, "axis");
      svg += svg_text(x(tick), bottom + 17, "tick mid", tick_text(tick, axis));
    }
  } else {
    // Names need room: turned where they are too long, and then every n-th one if there are many.
    const bool is_turned = has_turned_names(axis, x.end() - x.start());
    const double room = (x.end() - x.start()) / static_cast<double>(axis.names.size());
    const auto step = is_turned ? static_cast<size_t>(std::max(1.0, std::ceil(13 / room))) : 1;
    for (size_t i = 0; i < axis.names.size(); i += step) {
      const double at = x(static_cast<double>(i));
      svg += svg_line(at, bottom, at, bottom + 4, "axis");
      if (!is_turned) {
        svg += svg_text(at, bottom + 17, "tick mid", axis.names[i]);
      } else {
        svg += fmt::format(
            "<text transform=\"translate({:.1f} {:.1f}) rotate(-40)\" class=\"tick "
            "end\">{}</text>\n",
            at + 4, bottom + 13, escape_html(axis.names[i]));
      }
    }
  }
  return svg + svg_text((x.start() + x.end()) / 2, kFigureHeight - 8, "label mid", axis.label);
}

std::string y_axis(const Axis& axis, const Scale& y, double left, double right) {
  std::string svg;
  for (const double tick : ticks_of(axis, y.range(), 5)) {
    svg += svg_line(left, y(tick), right, y(tick), "grid");
    svg += svg_text(left - 7, y(tick) + 4, "tick end", tick_text(tick, axis));
  }
  return svg + fmt::format(
                   "<text transform=\"translate(14 {:.1f}) rotate(-90)\" class=\"label "
                   "mid\">{}</text>\n",
                   (y.start() + y.end()) / 2, escape_html(axis.label));
}

double bottom_margin(const Axis& axis, double width) {
  return kBottomMargin +
         (has_turned_names(axis, width) ? std::min(0.62 * widest_name(axis), 90.0) : 0);
}

}  // namespace kelvin
