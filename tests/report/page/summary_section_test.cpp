#include <gtest/gtest.h>

#include "kelvin/report/page/sections.h"
#include "tests/report/page/page_input.h"

namespace kelvin::summary_section_test {

TEST(SummarySection, TellsTheStoryInWords) {
  const auto html = render_page(two_temperatures());
  EXPECT_TRUE(
      has(html, "<strong>6 runs</strong>: temperature 1 (3 seeds) against temperature 100"));
  EXPECT_TRUE(has(html, "falls from <strong>49</strong> to <strong>11</strong>"));
  EXPECT_TRUE(has(html, "in 3 of 3 seeds: 38.0 ± 2.5 lower"));
  EXPECT_TRUE(has(html, "kelvin demo"));
}

TEST(SummarySection, DoesNotCallOneSeedAFall) {
  auto input = two_temperatures();
  input.runs.resize(2);
  const auto html = render_page(input);
  EXPECT_FALSE(has(html, "falls from"));
  EXPECT_TRUE(has(html, "is <strong>49</strong> and <strong>10</strong>"));
}

TEST(SummarySection, SpeaksOfViewsWhereNoClassesAreTrained) {
  auto input = two_temperatures();
  EXPECT_TRUE(has(summary_section(input, compare(input.runs)), "tell classes apart"));
  for (auto& run : input.runs) run.metrics = {{{"step", 0}, {"train_view_accuracy", 0.1}}};
  const auto html = summary_section(input, compare(input.runs));
  EXPECT_TRUE(has(html, "other view"));
  EXPECT_FALSE(has(html, "tell classes apart"));
}

TEST(SummarySection, EscapesTheTitle) {
  auto input = two_temperatures();
  input.title = "<b>";
  EXPECT_FALSE(has(summary_section(input, compare(input.runs)), "<b>"));
}

}  // namespace kelvin::summary_section_test
