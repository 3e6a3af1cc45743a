#include "kelvin/formats/toml_text.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "tests/support/errors.h"

namespace kelvin::toml_text_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(ParseToml, KeepsEveryKindOfValue) {
  const auto document =
      parse_toml("a = 1\nb = 0.5\nc = true\nd = \"x\"\ne = [1, 2]\n[f]\ng = 2\n", "o");
  EXPECT_EQ(nlohmann::json(document),
            (nlohmann::json{
                {"a", 1}, {"b", 0.5}, {"c", true}, {"d", "x"}, {"e", {1, 2}}, {"f", {{"g", 2}}}}));
}

TEST(ParseToml, OfNothingIsAnEmptyObject) { EXPECT_EQ(parse_toml("", "o").dump(), "{}"); }

TEST(ParseToml, NamesOriginAndLineOfASyntaxError) {
  const auto message = error_of([] { parse_toml("a = 1\nb = = 2\n", "x/file.toml"); });
  EXPECT_TRUE(message.starts_with("x/file.toml: line 2: ")) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(ParseToml, RejectsAKeySetTwice) {
  EXPECT_TRUE(error_of([] { parse_toml("a = 1\na = 2\n", "o"); }).starts_with("o: line 2: "));
}

TEST(ParseToml, RejectsBytesThatAreNoUtf8) {
  EXPECT_TRUE(error_of([] { parse_toml("a = \"\xff\"\n", "o"); }).starts_with("o: line 1: "));
}

TEST(ParseToml, RejectsDatesAndTimes) {
  EXPECT_EQ(error_of([] { parse_toml("\na = 2020-01-01\n", "o"); }),
            "o: line 2: dates and times are not settings");
}

// A key "a.a.a" with this many dots.
std::string dotted_key(int dots) {
  std::string key = "a";
  for (int i = 0; i < dots; ++i) key += ".a";
  return key;
}

TEST(ParseToml, SurvivesDeepNesting) {
  EXPECT_EQ(flatten(parse_toml(dotted_key(2000) + " = 1", "o"), "o").size(), 1U);
  EXPECT_THROW(parse_toml("a = " + std::string(100000, '['), "o"), Error);
  EXPECT_EQ(error_of([] { parse_toml(dotted_key(100000) + " = 1", "o"); }),
            "o: may nest too deeply: must have at most 2000 dots, has 100000");
}

TEST(ParseTomlValue, ReadsEveryKindOfValue) {
  EXPECT_EQ(parse_toml_value("3", "k"), Value(3));
  EXPECT_TRUE(parse_toml_value("3", "k").is_number_integer());
  EXPECT_EQ(parse_toml_value("0.1", "k"), Value(0.1));
  EXPECT_EQ(parse_toml_value("1e-3", "k"), Value(1e-3));
  EXPECT_EQ(parse_toml_value("true", "k"), Value(true));
  EXPECT_EQ(parse_toml_value("\"text\"", "k"), Value("text"));
  EXPECT_EQ(parse_toml_value("[1, 2]", "k"), Value({1, 2}));
  EXPECT_TRUE(std::isnan(parse_toml_value("nan", "k").get<double>()));
}

TEST(ParseTomlValue, TakesABareWordAsAText) {
  EXPECT_EQ(parse_toml_value("resnet20", "k"), Value("resnet20"));
  EXPECT_EQ(parse_toml_value("imagefolder:/data/grün x", "k"), Value("imagefolder:/data/grün x"));
  EXPECT_EQ(parse_toml_value("0.3x", "k"), Value("0.3x"));
}

TEST(ParseTomlValue, RejectsHalfAValue) {
  for (const std::string text : {"", "\"open", "[1, 2", "=3", "a=b", "{x"}) {
    EXPECT_EQ(error_of([&] { parse_toml_value(text, "k"); }), "k: cannot read '" + text + "'");
  }
}

TEST(ParseTomlValue, RejectsBytesThatAreNoUtf8) {
  EXPECT_EQ(error_of([] { parse_toml_value("a\xff", "k"); }), "k: cannot read 'a\xff'");
}

TEST(Flatten, JoinsNestedTablesToFullNames) {
  EXPECT_EQ(flatten(parse_toml("seed = 1\n[a]\nb = 2\n[a.c]\nd = [3]\n", "o"), "o"),
            (Values{{"seed", 1}, {"a.b", 2}, {"a.c.d", Value::array({3})}}));
}

TEST(Flatten, RejectsListsOfAnythingButValues) {
  for (const char* text : {"[[a.b]]\nc = 1\n", "a.b = [[1], [2]]\n"}) {
    EXPECT_EQ(error_of([&] { flatten(parse_toml(text, "o"), "o"); }),
              "o: a.b: must be a value or a list of values");
  }
}

TEST(TomlTextOf, IsReadBackAsTheSameValue) {
  const std::vector<Value> values = {1,
                                     -5,
                                     std::numeric_limits<int64_t>::max(),
                                     0.1,
                                     1.0 / 3,
                                     1e300,
                                     5e-324,
                                     100.0,
                                     -0.0,
                                     1e16,
                                     true,
                                     false,
                                     "",
                                     "a \"quoted\" \\ text\nwith\tall",
                                     "grün 🙂",
                                     "\x01",
                                     {1, 2},
                                     {0.5, 1.0},
                                     {"a", "b"},
                                     Value::array(),
                                     kInfinity,
                                     -kInfinity};
  for (const auto& value : values) {
    const auto again = parse_toml_value(toml_text_of(value), "k");
    EXPECT_EQ(again, value);
    EXPECT_EQ(again.type_name(), value.type_name());
    EXPECT_EQ(again.is_number_float(), value.is_number_float()) << toml_text_of(value);
  }
  EXPECT_TRUE(std::isnan(parse_toml_value(toml_text_of(std::nan("")), "k").get<double>()));
}

TEST(TomlTextOf, IsTheShortestText) {
  EXPECT_EQ(toml_text_of(0.1), "0.1");
  EXPECT_EQ(toml_text_of(100.0), "100.0");
  EXPECT_EQ(toml_text_of({1, 2}), "[1, 2]");
  EXPECT_EQ(toml_text_of("x"), "\"x\"");
}

std::string many_keys(int64_t count) {
  std::string text = "[train]\n";
  for (int64_t i = 0; i < count; ++i) text += "key" + std::to_string(i) + " = 1\n";
  return text;
}

// Quadratic time took 11 s.
TEST(ParseToml, TakesTimeInProportionToTheKeys) {
  const auto text = many_keys(100'000);
  const auto begin = std::chrono::steady_clock::now();
  const auto values = flatten(parse_toml(text, "o"), "o");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(values.size(), 100'000U);
  EXPECT_EQ(values.at("train.key99999"), 1);
  EXPECT_LT(seconds.count(), 5);
}

}  // namespace kelvin::toml_text_test
