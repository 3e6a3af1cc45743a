#include "kelvin/report/studies/study.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/errors.h"

namespace kelvin::study_test {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const Readings kReadings = {
    {.name = "a", .value = 2, .interval = Interval{1, 3}, .definition = {{"n", 4}, {"k", 1}}},
    {.name = "a", .value = 5, .definition = {{"n", 2}, {"k", 1}}},
    {.name = "a", .value = 7, .definition = {{"n", 2}, {"k", 2}}},
    {.name = "b", .value = 1}};

TEST(Study, FindsReadingsByNameAndDefinition) {
  EXPECT_EQ(readings_named(kReadings, "a").size(), 3U);
  EXPECT_EQ(readings_named(kReadings, "a", {{"k", 1}}).size(), 2U);
  EXPECT_EQ(reading_named(kReadings, "a", {{"k", 2}}).value, 7);
  EXPECT_EQ(numbers_under(kReadings, "a", "n"), (std::vector<double>{2, 4}));
}

TEST(Study, MakesPointsWithBandsOfReadings) {
  const auto points = points_over(kReadings, "a", "n", {{"k", 1}});
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].x, 4);
  EXPECT_EQ(points[0].low, 1);
  EXPECT_EQ(points[0].high, 3);
  EXPECT_TRUE(std::isnan(points[1].low));
}

TEST(Study, AsTextHasTablesAndThenFindings) {
  const Study study{.title = "T",
                    .findings = {"It is so."},
                    .tables = {{.title = "Numbers", .columns = {{"x"}}, .rows = {{"1"}}}}};
  const auto text = study_text(study, TableFormat::text, 80);
  EXPECT_LT(text.find("Numbers"), text.find("It is so."));
  EXPECT_TRUE(contains(study_text(study, TableFormat::markdown, 0), "| x |"));
}

TEST(Study, AsAPageNeedsNothingElseAndEscapesEverything) {
  const std::string attack = "<img src=x>";
  const Study study{.title = attack,
                    .findings = {attack},
                    .tables = {{.title = attack, .columns = {{attack}}, .rows = {{attack}}}}};
  const auto html = study_page(study, {{.name = attack}}, attack);
  EXPECT_FALSE(contains(html, "<img"));
  EXPECT_TRUE(contains(html, "default-src 'none'"));
  EXPECT_TRUE(html.ends_with("</html>\n"));
}

TEST(Study, RefusesWhatIsNotThere) {
  EXPECT_EQ(error_of([] {
              reading_named(kReadings, "c", {{"n", 1}});
            }),
            "study: there is no reading 'c' with {\"n\":1}");
  EXPECT_EQ(error_of([] { study_page({}, {}, ""); }), "study: needs readings, got none");
}

}  // namespace kelvin::study_test
