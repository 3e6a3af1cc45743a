#include "kelvin/core/settings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/errors.h"

namespace kelvin::settings_test {

// One field of every kind a setting can have, with its default.
struct Fields {
  bool flag = false;
  int64_t whole = 1;
  double number = 0.5;
  std::string text = "default";
  std::vector<double> numbers = {1, 2};
  std::vector<std::string> texts = {"a"};

  void read_from(Settings& settings) {
    settings.read("flag", flag);
    settings.read("whole", whole);
    settings.read("number", number);
    settings.read("text", text);
    settings.read("numbers", numbers);
    settings.read("texts", texts);
  }
};

Fields fields_from(const Values& values) {
  Settings settings("s", values);
  Fields fields;
  fields.read_from(settings);
  return fields;
}

std::string refusal_of(const std::string& key, const Value& value) {
  return error_of([&] { fields_from({{key, value}}); });
}

TEST(Settings, KeepTheDefaultsOfFieldsThatAreNotSet) {
  const auto fields = fields_from({});
  EXPECT_FALSE(fields.flag);
  EXPECT_EQ(fields.whole, 1);
  EXPECT_EQ(fields.number, 0.5);
  EXPECT_EQ(fields.text, "default");
  EXPECT_EQ(fields.numbers, (std::vector<double>{1, 2}));
  EXPECT_EQ(fields.texts, (std::vector<std::string>{"a"}));
}

TEST(Settings, OverwriteEveryFieldThatIsSet) {
  const auto fields = fields_from({{"flag", true},
                                   {"whole", -7},
                                   {"number", 2.25},
                                   {"text", ""},
                                   {"numbers", {3, 4.5}},
                                   {"texts", {"x", "y"}}});
  EXPECT_TRUE(fields.flag);
  EXPECT_EQ(fields.whole, -7);
  EXPECT_EQ(fields.number, 2.25);
  EXPECT_EQ(fields.text, "");
  EXPECT_EQ(fields.numbers, (std::vector<double>{3, 4.5}));
  EXPECT_EQ(fields.texts, (std::vector<std::string>{"x", "y"}));
}

TEST(Settings, TakeAWholeNumberWhereANumberIsExpected) {
  EXPECT_EQ(fields_from({{"number", 100}}).number, 100.0);
}

TEST(Settings, TakeASingleValueForAListOfOne) {
  EXPECT_EQ(fields_from({{"numbers", 3}}).numbers, (std::vector<double>{3}));
  EXPECT_EQ(fields_from({{"texts", "x"}}).texts, (std::vector<std::string>{"x"}));
}

TEST(Settings, TakeAnEmptyList) {
  EXPECT_TRUE(fields_from({{"numbers", Value::array()}}).numbers.empty());
}

TEST(Settings, KeepTheLargestWholeNumbers) {
  const auto largest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(fields_from({{"whole", largest}}).whole, largest);
}

TEST(Settings, RejectValuesOfAnotherKind) {
  EXPECT_EQ(refusal_of("flag", 1), "s.flag: must be true or false, got 1");
  EXPECT_EQ(refusal_of("whole", 0.5), "s.whole: must be a whole number, got 0.5");
  EXPECT_EQ(refusal_of("whole", true), "s.whole: must be a whole number, got true");
  EXPECT_EQ(refusal_of("number", "abc"), "s.number: must be a number, got \"abc\"");
  EXPECT_EQ(refusal_of("text", 3), "s.text: must be a text, got 3");
  EXPECT_EQ(refusal_of("numbers", {1, "x"}), "s.numbers: must be a list of numbers, got [1,\"x\"]");
  EXPECT_EQ(refusal_of("texts", {"x", 1}), "s.texts: must be a list of texts, got [\"x\",1]");
  EXPECT_EQ(refusal_of("whole", {1, 2}), "s.whole: must be a whole number, got [1,2]");
}

TEST(Settings, LeaveTheFieldAloneWhenTheyReject) {
  Settings settings("s", {{"whole", "x"}});
  int64_t whole = 5;
  EXPECT_THROW(settings.read("whole", whole), Error);
  EXPECT_EQ(whole, 5);
}

TEST(Settings, ResolveToEveryKeyReadWithItsFinalValue) {
  Settings settings("s", {{"whole", 9}, {"texts", "x"}});
  Fields fields;
  fields.read_from(settings);
  EXPECT_EQ(settings.resolved(), (Values{{"flag", false},
                                         {"whole", 9},
                                         {"number", 0.5},
                                         {"text", "default"},
                                         {"numbers", {1.0, 2.0}},
                                         {"texts", Value::array({"x"})}}));
}

TEST(Settings, ReadTheSameAgainFromWhatTheyResolvedTo) {
  Settings first("s", {{"whole", 9}});
  Fields fields;
  fields.read_from(first);
  Settings second("s", first.resolved());
  Fields again;
  again.read_from(second);
  EXPECT_NO_THROW(second.reject_unknown_keys());
  EXPECT_EQ(first.resolved(), second.resolved());
}

TEST(Settings, RejectAMisspeltKeyAndNameTheNearest) {
  Settings settings("train", {{"temprature", 2}});
  double temperature = 1;
  settings.read("temperature", temperature);
  EXPECT_EQ(error_of([&] { settings.reject_unknown_keys(); }),
            "train.temprature: no such setting; did you mean 'train.temperature'?");
}

TEST(Settings, ListTheKeysThereAreWhenNoneIsNear) {
  Settings settings("", {{"nonsense", 2}});
  double number = 1;
  settings.read("lr", number);
  settings.read("epochs", number);
  EXPECT_EQ(error_of([&] { settings.reject_unknown_keys(); }),
            "nonsense: no such setting; there are: epochs, lr");
}

TEST(Settings, AcceptASectionWhoseKeysWereAllRead) {
  Settings settings("s", {{"whole", 3}});
  int64_t whole = 1;
  settings.read("whole", whole);
  EXPECT_NO_THROW(settings.reject_unknown_keys());
}

TEST(Settings, NameKeysAsTheUserWritesThem) {
  EXPECT_EQ(Settings("measure.probe", {}).full_name("l2"), "measure.probe.l2");
  EXPECT_EQ(Settings("", {}).full_name("seed"), "seed");
}

TEST(Settings, ReadTheKeysOfAPartWithAPrefix) {
  Settings settings("model", {{"attention", "top_k"}, {"attention_k", 3}});
  std::string name;
  int64_t count = 8;
  double other = 0.5;
  settings.read("attention", name);
  settings.read_prefixed("attention_", [&](Settings& part) {
    part.read("k", count);
    part.read("other", other);
    EXPECT_EQ(part.full_name("k"), "model.attention_k");
  });
  EXPECT_EQ(count, 3);
  EXPECT_EQ(settings.full_name("k"), "model.k");
  EXPECT_NO_THROW(settings.reject_unknown_keys());
  EXPECT_EQ(settings.resolved(),
            (Values{{"attention", "top_k"}, {"attention_k", 3}, {"attention_other", 0.5}}));
}

TEST(Settings, RejectAPrefixedKeyThatNobodyRead) {
  Settings settings("model", {{"attention_kk", 3}});
  int64_t count = 8;
  settings.read_prefixed("attention_", [&](Settings& part) { part.read("k", count); });
  EXPECT_EQ(error_of([&] { settings.reject_unknown_keys(); }),
            "model.attention_kk: no such setting; did you mean 'model.attention_k'?");
}

}  // namespace kelvin::settings_test
