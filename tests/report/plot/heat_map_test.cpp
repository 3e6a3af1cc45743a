#include "kelvin/report/plot/heat_map.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kelvin::heat_map_test {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(HeatMap, HasACellForEachNumberAboveZero) {
  const auto svg = svg_of(HeatMapFigure{.title = "t", .rows = {{0, 0.5, 1}, {0.5, 0.5, 0}}});
  EXPECT_EQ(count(svg, "z"), 4U);
  // Cells of one shade share a path.
  EXPECT_EQ(count(svg, "<path class=\"cell\""), 2U);
  EXPECT_EQ(count(svg, "fill-opacity=\"0.50\""), 1U);
}

TEST(HeatMap, ShowsNumbersBeyondItsEndsAsThese) {
  const auto svg = svg_of(HeatMapFigure{.rows = {{7, -1, NAN}}});
  EXPECT_EQ(count(svg, "fill-opacity"), 1U);
  EXPECT_EQ(count(svg, "fill-opacity=\"1.00\""), 1U);
}

TEST(HeatMap, OfNothingIsStillAFigure) {
  EXPECT_TRUE(svg_of(HeatMapFigure{}).ends_with("</svg>\n"));
}

}  // namespace kelvin::heat_map_test
