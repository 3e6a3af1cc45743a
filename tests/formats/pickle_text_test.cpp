#include "kelvin/formats/pickle_text.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace kelvin {
namespace {

TEST(Unquoted, TakesWhatReprWrites) {
  EXPECT_EQ(unquoted("'it is'"), "it is");
  EXPECT_EQ(unquoted("\"it's\""), "it's");
  EXPECT_EQ(unquoted(R"('a\\b\'c\"d\n\r\t\x00\xff')"), std::string("a\\b'c\"d\n\r\t\0\xff", 12));
  EXPECT_EQ(unquoted("''"), "");
}

TEST(Unquoted, RejectsWhatIsNoLiteral) {
  for (const char* text : {"", "'", "a", "'a", "a'", "'a\"", R"('\')", R"('\x')", R"('\x1')",
                           R"('\xzz')", R"('\q')"}) {
    EXPECT_EQ(unquoted(text), std::nullopt) << text;
  }
}

TEST(UnescapedUnicode, GivesUtf8) {
  EXPECT_EQ(unescaped_unicode("plain"), "plain");
  EXPECT_EQ(unescaped_unicode("\xe9"), "\xc3\xa9");  // Latin-1 stands as it is
  EXPECT_EQ(unescaped_unicode(R"(\u005cx\u20ac\U0001f600)"), "\\x\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(unescaped_unicode(R"(a\n\)"), R"(a\n\)");  // other backslashes are themselves
}

TEST(UnescapedUnicode, RejectsWhatIsNoCharacter) {
  for (const char* text : {R"(\u12)", R"(\u12g4)", R"(\U00110000)", R"(\ud800)", R"(\U1234567)"}) {
    EXPECT_EQ(unescaped_unicode(text), std::nullopt) << text;
  }
}

TEST(Latin1Of, GivesOneByteForEachCharacter) {
  EXPECT_EQ(latin1_of("a\xc2\x80\xc3\xbf"), "a\x80\xff");
  EXPECT_EQ(latin1_of(""), "");
}

TEST(Latin1Of, IsTheInverseOfTheEscapes) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    if (i != '\\') bytes += static_cast<char>(i);
  }
  EXPECT_EQ(latin1_of(unescaped_unicode(bytes).value()), bytes);
}

TEST(Latin1Of, RejectsOtherCharactersAndBrokenOnes) {
  for (const char* text : {"\xe2\x82\xac", "\xc3", "\xc3z", "\x80", "\xff"}) {
    EXPECT_EQ(latin1_of(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace kelvin
