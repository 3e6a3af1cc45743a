#include "kelvin/core/text.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/python.h"

namespace kelvin::text_test {

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
  EXPECT_EQ(nearest_name("rate", {"rank"}), "");  // half of its letters
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
  EXPECT_EQ(nearest_name(std::string(8'000'000, 'a'), {"temperature"}), "");
}

TEST(ByteText, HasTheLargestUnitThatLeavesOne) {
  EXPECT_EQ(byte_text(0), "0 B");
  EXPECT_EQ(byte_text(1023), "1023 B");
  EXPECT_EQ(byte_text(1024), "1 KiB");
  EXPECT_EQ(byte_text(int64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(byte_text(int64_t{5000} << 40), "5000 TiB");
}

TEST(ByteText, IsReadAsPeopleWriteIt) {
  EXPECT_EQ(bytes_of("4GiB", "x"), int64_t{4} << 30);
  EXPECT_EQ(bytes_of("512 MiB", "x"), int64_t{512} << 20);
  EXPECT_EQ(bytes_of("2G", "x"), int64_t{2} << 30);
  EXPECT_EQ(bytes_of("0.5KiB", "x"), 512);
  EXPECT_EQ(bytes_of("1000", "x"), 1000);
  EXPECT_EQ(bytes_of("1000 B", "x"), 1000);
}

TEST(ByteText, RejectsWhatIsNoAmount) {
  for (const char* text : {"", "GiB", "4GB", "4 apples", "0", "-1GiB", "nan", "inf", "1e30"}) {
    EXPECT_EQ(error_of([&] { bytes_of(text, "measure.memory"); }),
              std::string("measure.memory: must be an amount of memory such as 4GiB or 512MiB, "
                          "got '") +
                  text + "'");
  }
}

using namespace std::string_literals;

TEST(ShownText, IsOnePrintableLine) {
  EXPECT_EQ(shown_text("layer1.0.weight ~"), "layer1.0.weight ~");
  EXPECT_EQ(shown_text("a\nb\0\x1b[2J\x7f\xff"s), "a?b??[2J??");
  EXPECT_EQ(shown_text(""), "");
}

TEST(ShownText, IsShort) {
  EXPECT_EQ(shown_text(std::string(80, 'x')), std::string(80, 'x'));
  EXPECT_EQ(shown_text(std::string(81, 'x')), std::string(80, 'x') + "...");
}

TEST(IsUtf8, KnowsTheBoundsOfEveryLength) {
  for (const std::string text :
       {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "caf\xc3\xa9 \xe2\x82\xac"}) {
    EXPECT_TRUE(is_utf8(text)) << shown_text(text);
  }
  EXPECT_TRUE(is_utf8("\0"s));
  for (const std::string text :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xe2\x82", "\xe2\x82\x41", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xf0\x90\x80", "\xff", "a\xe9"}) {
    EXPECT_FALSE(is_utf8(text));
  }
}

// One line of four bytes in two digits each for every text that Python refuses to decode.
TEST(IsUtf8, AgreesWithPythonOnManyBytes) {
  const auto answers = python_output(R"(
import random
random.seed(1)
lead = [0x41, 0x80, 0xbf, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xed, 0xef, 0xf0, 0xf1, 0xf4, 0xf5, 0xff]
follow = [0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0]
for _ in range(5000):
    text = bytes([random.choice(lead)] + random.choices(follow, k=random.randrange(4)))
    try:
        text.decode()
        print(1, text.hex())
    except UnicodeDecodeError:
        print(0, text.hex())
)");
  size_t lines = 0;
  for (size_t begin = 0; begin < answers.size(); ++lines) {
    const auto end = answers.find('\n', begin);
    std::string text;
    for (size_t i = begin + 2; i < end; i += 2) {
      text += static_cast<char>(std::stoi(answers.substr(i, 2), nullptr, 16));
    }
    EXPECT_EQ(is_utf8(text), answers.at(begin) == '1') << answers.substr(begin, end - begin);
    begin = end + 1;
  }
  EXPECT_EQ(lines, 5000U);
}

TEST(ShownLine, KeepsTextOfAnyLanguage) {
  EXPECT_EQ(shown_line(""), "");
  EXPECT_EQ(shown_line("a/b.npz: 'x' ≥ 1 † größe 漢字 🙂"),
            "a/b.npz: 'x' ≥ 1 † größe 漢字 🙂");
}

TEST(ShownLine, IsOneLineThatSteersNoTerminal) {
  EXPECT_EQ(shown_line("a\nb\r\nc\td"), "a b  c d");
  EXPECT_EQ(shown_line("\x1b[31mred\x07\x7f" + std::string(1, '\0')), "?[31mred???");
  EXPECT_EQ(shown_line("c1 \u009b31m, nel \u0085"), "c1 ?31m, nel ?");
  EXPECT_EQ(shown_line("\u202egpj.exe\u2066\u2028\u200f"), "?gpj.exe???");
}

TEST(ShownLine, HasAQuestionMarkForEachByteThatIsNoUtf8) {
  EXPECT_EQ(shown_line("gr\xf6\xdf"
                       "e"),
            "gr??e");
  EXPECT_EQ(shown_line("\xe2\x89"), "??");
  EXPECT_EQ(shown_line("\xed\xa0\x80\xc0\xaf"), "?????");
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
  EXPECT_TRUE(is_utf8(shown_line(every)));
}

TEST(ShownLine, IsNeverLong) {
  EXPECT_EQ(shown_line(std::string(1'000'000, 'x')), std::string(kMostShownBytes, 'x') + "...");
  EXPECT_EQ(shown_line("abcdef", 6), "abcdef");
  EXPECT_EQ(shown_line("abcdefg", 6), "abcdef...");
  EXPECT_EQ(shown_line("abcdeß", 6), "abcde...") << "no half of a character";
}

}  // namespace kelvin::text_test
