#include "kelvin/report/plot/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kelvin/report/page/html.h"

namespace kelvin {

double text_width(std::string_view text) {
  const auto letters = std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  });
  return kLetterWidth * static_cast<double>(letters);
}

std::string svg_text(double x, double y, const std::string& classes, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, classes,
                     escape_html(text));
}

std::string svg_line(double x1, double y1, double x2, double y2, const std::string& classes) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2,
      y2, classes);
}

std::string svg_opening(const std::string& title, const std::string& description) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "class=\"figure\">\n<title>{}</title>\n<desc>{}</desc>\n",
      kFigureWidth, kFigureHeight, escape_html(title), escape_html(description));
}

std::string colour_class(int64_t colour) { return fmt::format("c{}", colour % 8); }

int64_t palette_colour(size_t index, size_t count) {
  constexpr size_t kOrdered = 6;
  if (count <= 1) return 0;
  if (count > kOrdered) return static_cast<int64_t>(index % 7);
  return std::llround(static_cast<double>(index * (kOrdered - 1)) / static_cast<double>(count - 1));
}

const std::string& figure_css() {
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
