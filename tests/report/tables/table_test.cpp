#include "kelvin/report/tables/table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kelvin/core/check.h"

namespace kelvin::table_test {

Table example() {
  return {.title = "",
          .columns = {{.name = "name"}, {.name = "rank", .alignment = Alignment::right}},
          .rows = {{"low", "49 ± 0†"}, {"high, \"warm\"", "7"}, {"short"}}};
}

TEST(Table, AlignsColumnsByWhatATerminalShows) {
  EXPECT_EQ(text_of(example()),
            "name             rank\n"
            "------------  -------\n"
            "low           49 ± 0†\n"
            "high, \"warm\"        7\n"
            "short\n");
}

TEST(Table, PutsItsTitleBeforeTheText) {
  auto table = example();
  table.title = "Ranks";
  EXPECT_TRUE(text_of(table).starts_with("Ranks\n\nname"));
}

TEST(Table, InMarkdownEscapesBarsAndMarksAlignment) {
  const Table table{.columns = {{.name = "a|b"}, {.name = "n", .alignment = Alignment::right}},
                    .rows = {{"x\ny", "<1"}}};
  EXPECT_EQ(markdown_of(table), "| a\\|b | n |\n| --- | ---: |\n| x y | &lt;1 |\n");
}

TEST(Table, QuotesCsvOnlyWhereItMust) {
  EXPECT_EQ(csv_of(example()), "name,rank\nlow,49 ± 0†\n\"high, \"\"warm\"\"\",7\nshort,\n");
}

TEST(Table, InJsonHasNumbersWhereRightAlignedCellsAreNumbers) {
  const auto rows = nlohmann::json::parse(json_of(example()));
  ASSERT_EQ(rows.size(), 3);
  EXPECT_EQ(rows[0]["rank"], "49 ± 0†");
  EXPECT_EQ(rows[1]["rank"], 7);
  EXPECT_TRUE(rows[2]["rank"].is_null());
}

TEST(Table, KeepsNumbersOfLeftAlignedColumnsAsText) {
  const Table table{.columns = {{.name = "commit"}}, .rows = {{"12345678"}}};
  EXPECT_EQ(jsonl_of(table), "{\"commit\":\"12345678\"}\n");
}

TEST(Table, InJsonlHasOneObjectPerLine) {
  const auto text = jsonl_of(example());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

TEST(Table, EscapesHtml) {
  const Table table{.columns = {{.name = "<th>"}}, .rows = {{"<script>alert(1)</script>"}}};
  const auto html = html_of(table);
  EXPECT_EQ(html.find("<script>"), std::string::npos);
  EXPECT_NE(html.find("&lt;th&gt;"), std::string::npos);
}

TEST(Table, WithoutRowsIsOnlyItsHeader) {
  const Table table{.columns = {{.name = "a"}}};
  EXPECT_EQ(text_of(table), "a\n-\n");
  EXPECT_EQ(csv_of(table), "a\n");
  EXPECT_EQ(json_of(table), "[]\n");
}

TEST(TableFormat, NamesItsChoicesWhenItKnowsNone) {
  EXPECT_EQ(table_format("md"), TableFormat::markdown);
  EXPECT_EQ(table_format("jsonl"), TableFormat::jsonl);
  try {
    table_format("xml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "--format: must be text, md, csv, json or jsonl, got 'xml'");
  }
}

TEST(TableFormat, PicksTheRenderer) {
  EXPECT_EQ(render(example(), TableFormat::csv), csv_of(example()));
  EXPECT_EQ(render(example(), TableFormat::text), text_of(example()));
}

// Names of runs and texts of configs are strangers'.
TEST(Table, DoesNotSteerTheTerminalNorFillIt) {
  const Table table{.title = "a\x1b[2J",
                    .columns = {{.name = "name\x07"}, {.name = "n"}},
                    .rows = {{"\x1b]0;title\x07\nx", "1"}, {"gr\xf6", "2"}}};
  const auto text = text_of(table);
  EXPECT_EQ(text,
            "a?[2J\n\n"
            "name?         n\n"
            "------------  -\n"
            "?]0;title? x  1\n"
            "gr?           2\n");
  EXPECT_EQ(csv_of(table), "name?,n\n?]0;title? x,1\ngr?,2\n");
  EXPECT_EQ(markdown_of(table).find('\x1b'), std::string::npos);
  EXPECT_EQ(json_of(table).find('\x1b'), std::string::npos);
  const Table large{.columns = {{.name = "a"}}, .rows = {{std::string(3'000'000, 'x')}}};
  EXPECT_LT(text_of(large).size(), 10'000U);
  EXPECT_LT(markdown_of(large).size(), 10'000U);
  EXPECT_LT(html_of(large).size(), 10'000U);
}

}  // namespace kelvin::table_test
