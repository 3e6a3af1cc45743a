#include "kelvin/formats/pickle_literals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "tests/support/errors.h"

namespace kelvin::pickle_literals_test {

using namespace std::string_literals;

class PickleLiteral : public ::testing::Test {
 protected:
  // The value of the opcode at the head of `bytes`, which must be all of them.
  PickleValue value_of(const std::string& bytes) {
    bytes_ = bytes;
    PickleInput input(bytes_, where_);
    const auto opcode = input.opcode();
    const auto value = pickle_literal(opcode, input, pickle_);
    EXPECT_TRUE(value.has_value());
    EXPECT_EQ(input.left(), 0U);
    return value.value_or(PickleValue{});
  }

  int64_t integer_of(const std::string& bytes) {
    const auto value = value_of(bytes);
    EXPECT_EQ(value.kind, PickleKind::integer);
    return value.integer;
  }

  std::string refusal_of(const std::string& bytes) {
    return error_of([&] { value_of(bytes); });
  }

  const std::string where_ = "a";
  std::string bytes_;
  Pickle pickle_;
};

TEST_F(PickleLiteral, ReadsIntegersOfEveryLength) {
  EXPECT_EQ(integer_of("I-123\n"), -123);
  EXPECT_EQ(integer_of("L123L\n"), 123);
  EXPECT_EQ(integer_of("L-9223372036854775808\n"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(integer_of("J\xfe\xff\xff\xff"), -2);
  EXPECT_EQ(integer_of("K\xff"), 255);
  EXPECT_EQ(integer_of("M\x10'"), 10000);
  EXPECT_EQ(integer_of("\x8a\x00"s), 0);
  EXPECT_EQ(integer_of("\x8a\x02\x00\x80"s), -32768);
  EXPECT_EQ(integer_of("\x8a\x03\xff\x00\x01"s), 65791);
  EXPECT_EQ(integer_of("\x8b\x01\x00\x00\x00\x07"s), 7);
}

TEST_F(PickleLiteral, ReadsBooleansOfProtocol0) {
  EXPECT_EQ(value_of("I01\n").kind, PickleKind::boolean);
  EXPECT_EQ(value_of("I01\n").integer, 1);
  EXPECT_EQ(value_of("I00\n").kind, PickleKind::boolean);
  EXPECT_EQ(value_of("I1\n").kind, PickleKind::integer);
  EXPECT_EQ(value_of("\x88").integer, 1);
  EXPECT_EQ(value_of("\x89").integer, 0);
  EXPECT_EQ(value_of("N").kind, PickleKind::none);
}

TEST_F(PickleLiteral, ReadsRealNumbers) {
  EXPECT_EQ(value_of("F-1.5e3\n").real, -1500);
  EXPECT_TRUE(std::isnan(value_of("Fnan\n").real));
  EXPECT_EQ(value_of("G\xbf\xf8\x00\x00\x00\x00\x00\x00"s).real, -1.5);
}

TEST_F(PickleLiteral, ReadsBytesAndText) {
  for (const auto& bytes :
       {"S'a\\x00'\n"s, "T\x02\x00\x00\x00"s + "a\0"s, "U\x02"s + "a\0"s, "C\x02"s + "a\0"s,
        "B\x02\x00\x00\x00"s + "a\0"s, "\x8e\x02\x00\x00\x00\x00\x00\x00\x00"s + "a\0"s}) {
    EXPECT_EQ(value_of(bytes).kind, PickleKind::bytes);
    EXPECT_EQ(value_of(bytes).text, "a\0"s);
  }
  for (const auto& bytes :
       {"V\\u20ac\n"s, "\x8c\x03\xe2\x82\xac"s, "X\x03\x00\x00\x00\xe2\x82\xac"s,
        "\x8d\x03\x00\x00\x00\x00\x00\x00\x00\xe2\x82\xac"s}) {
    EXPECT_EQ(value_of(bytes).kind, PickleKind::text);
    EXPECT_EQ(value_of(bytes).text, "\xe2\x82\xac");
  }
}

TEST_F(PickleLiteral, LeavesOtherOpcodesAlone) {
  bytes_ = "]";
  PickleInput input(bytes_, where_);
  EXPECT_FALSE(pickle_literal(input.opcode(), input, pickle_).has_value());
}

TEST_F(PickleLiteral, RejectsNumbersThatDoNotFit) {
  EXPECT_EQ(refusal_of("I12x\n"), "a: byte 0: must be a number that fits 64 bits");
  EXPECT_EQ(refusal_of("F\n"), "a: byte 0: must be a number that fits 64 bits");
  EXPECT_EQ(refusal_of("I\n"), "a: byte 0: must be a number that fits 64 bits");
  EXPECT_EQ(refusal_of("L99999999999999999999x\n"),
            "a: byte 0: must be a number that fits 64 bits");
}

// The state of NumPy's generators is a number of 128 bits: no reason to refuse what is beside it.
TEST_F(PickleLiteral, MakesObjectsOfIntegersOfMoreThan64Bits) {
  for (const std::string& bytes :
       {std::string("I9223372036854775808\n"), std::string("L-9223372036854775809L\n"),
        "\x8a\x09" + std::string(9, '\1')}) {
    bytes_ = bytes;
    PickleInput input(bytes_, where_);
    const auto value = pickle_literal(input.opcode(), input, pickle_);
    ASSERT_TRUE(value.has_value());
    EXPECT_EQ(value->kind, PickleKind::object);
    EXPECT_EQ(value->text, "int");
    EXPECT_EQ(input.left(), 0U);
  }
}

TEST_F(PickleLiteral, RejectsLengthsBeyondTheFileBeforeItReservesThem) {
  EXPECT_EQ(refusal_of("\x8b\xff\xff\xff\x7f"),
            "a: byte 0: cut off: needs 2147483647 bytes, has 0");
  EXPECT_EQ(refusal_of("\x8b\xff\xff\xff\xff"), "a: byte 0: length must not be negative, is -1");
  EXPECT_EQ(refusal_of("T\xff\xff\xff\xff"), "a: byte 0: length must not be negative, is -1");
  EXPECT_EQ(refusal_of("\x8e\xff\xff\xff\xff\xff\xff\xff\xff" + "abc"s),
            "a: byte 0: cut off: needs 18446744073709551615 bytes, has 3");
  EXPECT_EQ(refusal_of("I12"), "a: byte 0: cut off: its line does not end");
  EXPECT_EQ(refusal_of("J\x01"), "a: byte 0: cut off: needs 4 bytes, has 1");
}

TEST_F(PickleLiteral, RejectsMalformedText) {
  EXPECT_EQ(refusal_of("Sabc\n"), "a: byte 0: text is malformed");
  EXPECT_EQ(refusal_of("V\\ud800\n"), "a: byte 0: text is malformed");
}

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

}  // namespace kelvin::pickle_literals_test
