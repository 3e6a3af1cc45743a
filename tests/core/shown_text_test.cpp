#include "kelvin/core/shown_text.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/python.h"

namespace kelvin {
namespace {

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

}  // namespace
}  // namespace kelvin
