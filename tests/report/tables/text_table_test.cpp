#include "kelvin/report/tables/text_table.h"

#include <gtest/gtest.h>

#include "kelvin/core/text.h"

namespace kelvin::text_table_test {

using Lines = std::vector<std::string>;

TEST(WrappedText, BreaksBetweenWords) {
  EXPECT_EQ(wrapped_lines("one two three", 7), (Lines{"one two", "three"}));
  EXPECT_EQ(wrapped_lines("one two three", 13), (Lines{"one two three"}));
}

TEST(WrappedText, HasOneLineWithoutALimit) {
  EXPECT_EQ(wrapped_lines("one two three", 0), (Lines{"one two three"}));
  EXPECT_EQ(wrapped_lines("", 5), (Lines{""}));
}

TEST(WrappedText, BreaksLongWordsWhereTheirPartsEnd) {
  EXPECT_EQ(wrapped_lines("participation_ratio", 15), (Lines{"participation_", "ratio"}));
  EXPECT_EQ(wrapped_lines("nc2_equinorm", 11), (Lines{"nc2_", "equinorm"}));
  EXPECT_EQ(wrapped_lines("/data/cifar-10/batches", 14), (Lines{"/data/cifar-", "10/batches"}));
}

TEST(WrappedText, BreaksAWordWithoutPartsAnywhere) {
  EXPECT_EQ(wrapped_lines("abcdefgh", 3), (Lines{"abc", "def", "gh"}));
}

TEST(WrappedText, CountsCodePointsAndNeverCutsOne) {
  EXPECT_EQ(shown_width("49 ± 0†"), 7U);
  EXPECT_EQ(wrapped_lines("±±±±", 2), (Lines{"±±", "±±"}));
}

Table described() {
  return {.columns = {{"name"}, {"rank", Alignment::right}, {"what it means"}},
          .rows = {{"low", "49", "each word of this text must be found again"}, {"high", "7", ""}}};
}

size_t widest_line(const std::string& text) {
  size_t widest = 0;
  for (const auto& line : split(text, '\n')) widest = std::max(widest, shown_width(line));
  return widest;
}

TEST(TextTable, IsOneLinePerRowWhereItFits) {
  EXPECT_EQ(fitted_text(described(), 80),
            "name  rank  what it means\n"
            "----  ----  ------------------------------------------\n"
            "low     49  each word of this text must be found again\n"
            "high     7\n");
  EXPECT_EQ(fitted_text(described(), 0), fitted_text(described(), 80));
}

TEST(TextTable, WrapsTextsWhereItDoesNot) {
  EXPECT_EQ(fitted_text(described(), 32),
            "name  rank  what it means\n"
            "----  ----  --------------------\n"
            "low     49  each word of this\n"
            "            text must be found\n"
            "            again\n"
            "high     7\n");
}

TEST(TextTable, WrapsHeadersAndKeepsThemAtTheRule) {
  const Table table{.columns = {{"layer"}, {"participation_ratio", Alignment::right}},
                    .rows = {{"conv1", "12.5"}}};
  EXPECT_EQ(fitted_text(table, 22),
            "        participation_\n"
            "layer            ratio\n"
            "-----  ---------------\n"
            "conv1             12.5\n");
}

TEST(TextTable, PutsColumnsThatDoNotFitBelowAndBreaksNoNumber) {
  Table table{.columns = {{"layer"}}, .rows = {{"conv1"}}};
  for (int i = 0; i < 5; ++i) {
    table.columns.push_back({"m" + std::to_string(i), Alignment::right});
    table.rows[0].push_back("123456" + std::to_string(i));
  }
  EXPECT_EQ(fitted_text(table, 24),
            "layer       m0       m1\n"
            "-----  -------  -------\n"
            "conv1  1234560  1234561\n"
            "\n"
            "layer       m2       m3\n"
            "-----  -------  -------\n"
            "conv1  1234562  1234563\n"
            "\n"
            "layer       m4\n"
            "-----  -------\n"
            "conv1  1234564\n");
}

TEST(TextTable, FitsWhateverItsTextsAre) {
  const std::string path(200, 'x');
  const Table table{.title = "A title that is longer than what may be used of the line",
                    .columns = {{"name"}, {"folder"}, {"bytes", Alignment::right}},
                    .rows = {{"a", "/" + path + "/" + path, "123456789"}},
                    .notes = {"A note that is longer than what may be used of the line, too."}};
  for (const size_t width : {40, 60, 80}) {
    EXPECT_LE(widest_line(fitted_text(table, width)), width) << width;
  }
}

TEST(TextTable, HasItsNotesBelow) {
  auto table = described();
  table.notes = {"† means something."};
  EXPECT_TRUE(fitted_text(table, 80).ends_with("high     7\n\n† means something.\n"));
}

}  // namespace kelvin::text_table_test
