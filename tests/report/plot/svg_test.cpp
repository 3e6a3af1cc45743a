#include "kelvin/report/plot/svg.h"

#include <gtest/gtest.h>

namespace kelvin::svg_test {

TEST(PaletteColour, IsDistinctForUpToSixGroupsFromColdToWarm) {
  EXPECT_EQ(palette_colour(0, 2), 0);
  EXPECT_EQ(palette_colour(1, 2), 5);
  for (size_t count = 2; count <= 6; ++count) {
    for (size_t i = 1; i < count; ++i) {
      EXPECT_LT(palette_colour(i - 1, count), palette_colour(i, count));
    }
  }
}

TEST(StandaloneSvg, BringsItsStyle) {
  const auto svg = standalone_svg(svg_opening("title", "") + "</svg>\n");
  EXPECT_LT(svg.find("<svg"), svg.find("<style>"));
  EXPECT_NE(svg.find("prefers-color-scheme: dark"), std::string::npos);
}

TEST(TextWidth, CountsCharactersNotBytes) { EXPECT_EQ(text_width("‖γ‖"), text_width("abc")); }

TEST(SvgText, IsEscaped) {
  EXPECT_EQ(svg_text(1, 2, "key", "<b>"),
            "<text x=\"1.0\" y=\"2.0\" class=\"key\">&lt;b&gt;</text>\n");
}

}  // namespace kelvin::svg_test
