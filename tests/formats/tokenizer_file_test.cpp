#include "kelvin/formats/tokenizer_file.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/support/errors.h"
#include "tests/support/language_files.h"
#include "tests/support/mutations.h"

namespace kelvin::tokenizer_file_test {

TEST(TokenizerFile, HoldsPiecesWithTheirScores) {
  const auto pieces = parse_llama2c_tokenizer(tokenizer_bytes({" ", "a"}), "x.bin");
  ASSERT_EQ(pieces.size(), 300U);
  EXPECT_EQ(pieces[3 + 10].text, "<0x0A>");
  EXPECT_EQ(pieces[259].text, " ");
  EXPECT_EQ(pieces[260].text, "a");
  EXPECT_EQ(pieces[260].score, -260);
}

TEST(TokenizerFile, MustEndBehindAPiece) {
  const auto bytes = tokenizer_bytes({});
  for (const size_t length : {bytes.size() - 1, size_t{7}, size_t{2}}) {
    const auto message =
        error_of([&] { parse_llama2c_tokenizer(bytes.substr(0, length), "x.bin"); });
    EXPECT_TRUE(message.starts_with("x.bin: cut off: ")) << message;
  }
  EXPECT_EQ(error_of([&] { parse_llama2c_tokenizer(bytes.substr(0, 4), "x.bin"); }),
            "x.bin: has no pieces");
}

TEST(TokenizerFile, RefusesLengthsAndScoresThatCannotBe) {
  std::string bytes;
  append_number(bytes, int32_t{2});
  auto nan = bytes;
  append_number(nan, std::numeric_limits<float>::quiet_NaN());
  append_number(nan, int32_t{0});
  EXPECT_EQ(error_of([&] { parse_llama2c_tokenizer(nan, "x.bin"); }),
            "x.bin: the score of piece 0 must be finite");
  append_number(bytes, 0.0F);
  append_number(bytes, int32_t{3});
  EXPECT_EQ(error_of([&] { parse_llama2c_tokenizer(bytes + "abc", "x.bin"); }),
            "x.bin: piece 0 must have at most 2 bytes, has 3");
  std::string none;
  append_number(none, int32_t{0});
  EXPECT_EQ(error_of([&] { parse_llama2c_tokenizer(none, "x.bin"); }),
            "x.bin: is no tokenizer of llama2.c: its longest piece has 0 bytes");
}

TEST(TokenizerFile, NeverCrashesWhateverItHolds) {
  expect_values_or_errors(tokenizer_bytes({"ab"}), 2000, 2, [](const std::string& bytes) {
    parse_llama2c_tokenizer(bytes, "x.bin");
  });
}

}  // namespace kelvin::tokenizer_file_test
