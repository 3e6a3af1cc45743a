#include "kelvin/core/text.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace kelvin {
namespace {

using Texts = std::vector<std::string>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Join, PutsTheSeparatorBetweenPartsOnly) {
  EXPECT_EQ(join({"a", "b", "c"}, ", "), "a, b, c");
  EXPECT_EQ(join({"a"}, ", "), "a");
  EXPECT_EQ(join({}, ", "), "");
}

TEST(Split, CutsAtEverySeparator) {
  EXPECT_EQ(split("a,b,c", ','), (Texts{"a", "b", "c"}));
  EXPECT_EQ(split(",a,,", ','), (Texts{"", "a", "", ""}));
}

TEST(Split, OfAnEmptyTextIsOneEmptyPart) { EXPECT_EQ(split("", ','), Texts{""}); }

TEST(Split, IsUndoneByJoin) {
  for (const std::string text : {"", ",", "a", "a,b", ",,x,"}) {
    EXPECT_EQ(join(split(text, ','), ","), text);
  }
}

TEST(NearestName, FindsAMisspeltName) {
  const Texts names = {"learning_rate", "momentum", "temperature"};
  EXPECT_EQ(nearest_name("temprature", names), "temperature");    // left out
  EXPECT_EQ(nearest_name("temperatture", names), "temperature");  // put in
  EXPECT_EQ(nearest_name("nomentum", names), "momentum");         // replaced
  EXPECT_EQ(nearest_name("momentum", names), "momentum");
}

TEST(NearestName, PrefersTheSmallestDistanceThenTheFirst) {
  EXPECT_EQ(nearest_name("resnet2", {"resnet110", "resnet20"}), "resnet20");
  EXPECT_EQ(nearest_name("cat", {"bat", "hat"}), "bat");
}

TEST(NearestName, IsEmptyWhenNothingIsNear) {
  EXPECT_EQ(nearest_name("xyzzy", {"temperature", "lr"}), "");
  EXPECT_EQ(nearest_name("ab", {"xy"}), "");
  EXPECT_EQ(nearest_name("anything", {}), "");
  EXPECT_EQ(nearest_name("", {"lr"}), "");
}

TEST(ShortNumber, KeepsWholeNumbersWhole) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(-0.0), "0");
  EXPECT_EQ(short_number(-42), "-42");
  EXPECT_EQ(short_number(99999), "99999");
}

TEST(ShortNumber, RoundsToTheDigitsWithoutTrailingZeros) {
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(3.14159265), "3.142");
  EXPECT_EQ(short_number(3.14159265, 2), "3.1");
  EXPECT_EQ(short_number(2.00001), "2");
  EXPECT_EQ(short_number(1e-9), "1e-09");
  EXPECT_EQ(short_number(12345678), "1.235e+07");
}

TEST(ShortNumber, SaysWhatIsNoNumber) {
  EXPECT_EQ(short_number(kInfinity), "inf");
  EXPECT_EQ(short_number(-kInfinity), "-inf");
  EXPECT_EQ(short_number(kNan), "nan");
}

TEST(ShortDuration, ChoosesTwoUnits) {
  EXPECT_EQ(short_duration(0), "0 s");
  EXPECT_EQ(short_duration(48.4), "48 s");
  EXPECT_EQ(short_duration(125), "2 min 05 s");
  EXPECT_EQ(short_duration(3720), "1 h 02 min");
  EXPECT_EQ(short_duration(100 * 3600), "100 h 00 min");
}

TEST(ShortDuration, RoundsBeforeItChoosesTheUnit) {
  EXPECT_EQ(short_duration(59.7), "1 min 00 s");
  EXPECT_EQ(short_duration(3599.9), "1 h 00 min");
}

TEST(ShortDuration, IsZeroForClocksThatRunBackwards) { EXPECT_EQ(short_duration(-3), "0 s"); }

TEST(ShortDuration, IsADashWhenNobodyKnows) {
  EXPECT_EQ(short_duration(kInfinity), "–");
  EXPECT_EQ(short_duration(kNan), "–");
}

TEST(Text, ComesInTheOrderOfItsNumbers) {
  EXPECT_TRUE(comes_before("layer2", "layer10"));
  EXPECT_FALSE(comes_before("layer10", "layer2"));
  EXPECT_TRUE(comes_before("layer1.2", "layer1.10"));
  EXPECT_TRUE(comes_before("a", "b"));
  EXPECT_TRUE(comes_before("layer", "layer1"));
  EXPECT_FALSE(comes_before("layer1", "layer1"));
  EXPECT_TRUE(comes_before("a007b", "a8"));
  EXPECT_FALSE(comes_before("", ""));
}

TEST(NearestName, DoesNotGuessWhatAMegabyteWasMeantToBe) {
  const std::string long_name(200, 'a');
  EXPECT_EQ(nearest_name(long_name, {std::string(199, 'a')}), std::string(199, 'a'));
  EXPECT_EQ(nearest_name(long_name + 'a', {long_name}), "");
  EXPECT_EQ(nearest_name(std::string(50'000'000, 'a'), {"temperature"}), "");
}

}  // namespace
}  // namespace kelvin
