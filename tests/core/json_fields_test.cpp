#include "kelvin/core/json_fields.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/mutations.h"

namespace kelvin::json_fields_test {

using Json = nlohmann::ordered_json;

TEST(JsonFields, AreReadByTheTypeTheyMustHave) {
  const auto object = parse_json_object(
      R"({"a": true, "b": -3, "c": 0.5, "d": "text", "e": null, "f": [1], "g": {"x": 7}})", "f");
  const JsonFields fields(object, "f");
  EXPECT_TRUE(fields.flag("a"));
  EXPECT_EQ(fields.whole("b"), -3);
  EXPECT_EQ(fields.number("b"), -3);
  EXPECT_EQ(fields.number("c"), 0.5);
  EXPECT_EQ(fields.text("d"), "text");
  EXPECT_TRUE(std::isnan(fields.number_or_nan("e")));
  EXPECT_EQ(fields.list("f").size(), 1U);
  std::map<std::string, int64_t> counts = {{"old", 1}};
  fields.read("g", counts);
  EXPECT_EQ(counts, (std::map<std::string, int64_t>{{"x", 7}}));
  EXPECT_EQ(fields.text_or_empty("none"), "");
}

TEST(JsonFields, ErrorsNameTheFileTheKeyAndWhatIsThere) {
  const Json object = {{"n", "abc"},  {"w", 1.5},        {"huge", 18446744073709551615U},
                       {"l", {1, 2}}, {"null", nullptr}, {"counts", {{"x", "y"}}}};
  const JsonFields fields(object, "run/file.json: line 3");
  EXPECT_EQ(error_of([&] { fields.number("gone"); }), "run/file.json: line 3: gone: is missing");
  EXPECT_EQ(error_of([&] { fields.number("n"); }),
            "run/file.json: line 3: n: must be a number, is \"abc\"");
  EXPECT_EQ(error_of([&] { fields.number("null"); }),
            "run/file.json: line 3: null: must be a number, is null");
  EXPECT_EQ(error_of([&] { fields.whole("w"); }),
            "run/file.json: line 3: w: must be a whole number, is 1.5");
  EXPECT_EQ(error_of([&] { fields.whole("huge"); }),
            "run/file.json: line 3: huge: must be a whole number, is 18446744073709551615");
  EXPECT_EQ(error_of([&] { fields.text("l"); }),
            "run/file.json: line 3: l: must be a text, is a list");
  EXPECT_EQ(error_of([&] { fields.flag("l"); }),
            "run/file.json: line 3: l: must be true or false, is a list");
  EXPECT_EQ(error_of([&] { fields.list("n"); }),
            "run/file.json: line 3: n: must be a list, is \"abc\"");
  EXPECT_EQ(error_of([&] { fields.object("n"); }),
            "run/file.json: line 3: n: must be an object, is \"abc\"");
  EXPECT_EQ(error_of([&] { fields.number_or_nan("n"); }),
            "run/file.json: line 3: n: must be a number or null, is \"abc\"");
  std::map<std::string, int64_t> counts;
  EXPECT_EQ(error_of([&] { fields.read("counts", counts); }),
            "run/file.json: line 3: counts: x: must be a whole number, is \"y\"");
  EXPECT_EQ(error_of([&] { JsonFields(object["n"], "f"); }),
            "f: must be a JSON object, is \"abc\"");
}

TEST(JsonFields, ShowNoControlCharactersAndNoMegabyte) {
  const Json object = {{"n", "\x1b[2J\n" + std::string(1'000'000, 'x')}};
  const JsonFields fields(object, "f");
  const auto message = error_of([&] { fields.number("n"); });
  EXPECT_EQ(message.find_first_of("\x1b\n"), std::string::npos) << message;
  EXPECT_LT(message.size(), 120U);
}

TEST(JsonFields, OfNoObjectAndOfDeepOnesAreRefused) {
  for (const char* text : {"", "[]", "3", "{", "{\"a\": 1}{", "nonsense", "\"{}\""}) {
    EXPECT_EQ(error_of([&] { parse_json_object(text, "f"); }), "f: not a JSON object") << text;
  }
  const auto deep = "{\"a\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_EQ(error_of([&] { parse_json_object(deep, "f"); }),
            "f: nests too deeply: must have at most 64 brackets within each other, has 100001");
  const auto text =
      R"({"a": "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"["})";
  EXPECT_NO_THROW(parse_json_object(text, "f"));
  EXPECT_EQ(error_of([] { load_json_object("/no/such.json"); }),
            "/no/such.json: cannot read: No such file or directory");
}

}  // namespace kelvin::json_fields_test
