#include "kelvin/report/wrapped_text.h"

#include <gtest/gtest.h>

namespace kelvin {
namespace {

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

}  // namespace
}  // namespace kelvin
