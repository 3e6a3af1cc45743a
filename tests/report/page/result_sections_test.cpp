#include <gtest/gtest.h>

#include "kelvin/report/page/sections.h"
#include "tests/report/page/page_input.h"

namespace kelvin::result_sections_test {

TEST(DefinitionSection, DefinesTheReadingsItUses) {
  const auto html = render_page(two_temperatures());
  EXPECT_TRUE(has(html, "<dt>solution rank (SR)<code>solution_rank</code>"));
  EXPECT_TRUE(has(html, "gamma 0.001, shift_free true"));
  EXPECT_FALSE(has(html, "<code>kappa</code>"));
}

TEST(ComparisonSection, HasAColumnForEachGroup) {
  const auto input = two_temperatures();
  const auto html = comparison_section(input, compare(input.runs));
  EXPECT_TRUE(has(html, "<h2>Comparison</h2>"));
  EXPECT_TRUE(has(html, "temperature 1<") && has(html, "temperature 100<"));
}

TEST(VerdictSection, JudgesEveryClaim) {
  auto input = two_temperatures();
  EXPECT_TRUE(has(verdict_section(input), "<span class=\"outcome holds\">holds</span>"));
  input.claims.clear();
  EXPECT_EQ(verdict_section(input), "");
}

TEST(CaveatSection, OfRunsWithoutCaveatsIsEmpty) {
  EXPECT_EQ(caveat_section(two_temperatures()), "");
}

}  // namespace kelvin::result_sections_test
