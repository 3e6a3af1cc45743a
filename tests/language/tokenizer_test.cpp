#include "kelvin/language/tokenizer.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "kelvin/core/files.h"
#include "tests/support/errors.h"
#include "tests/support/language_files.h"
#include "tests/support/real_data.h"

namespace kelvin::tokenizer_test {

Tokenizer tokenizer_of(const std::vector<std::string>& pieces) {
  return {parse_llama2c_tokenizer(tokenizer_bytes(pieces), "x.bin"), "x.bin"};
}

const std::vector<std::string> kPieces = {" ", "a", "b", "c", "ab", "bc", " a", "aa", "abc", "aaa"};

// As llama2.c does it: look at all neighbours, put the best together, begin again.
std::vector<int64_t> slowly_encoded(const std::vector<TokenPiece>& pieces,
                                    const std::string& text) {
  std::map<std::string, int64_t> tokens;
  for (size_t i = 0; i < pieces.size(); ++i) tokens.emplace(pieces[i].text, i);
  std::vector<int64_t> encoded = {tokens.at(" ")};
  for (const char letter : text) encoded.push_back(tokens.at(std::string(1, letter)));
  while (true) {
    float best = -1e10F;
    size_t place = encoded.size();
    for (size_t i = 0; i + 1 < encoded.size(); ++i) {
      const auto found = tokens.find(pieces[encoded[i]].text + pieces[encoded[i + 1]].text);
      if (found == tokens.end() || pieces[found->second].score <= best) continue;
      best = pieces[found->second].score;
      place = i;
    }
    if (place == encoded.size()) return encoded;
    encoded[place] = tokens.at(pieces[encoded[place]].text + pieces[encoded[place + 1]].text);
    encoded.erase(encoded.begin() + static_cast<int64_t>(place) + 1);
  }
}

TEST(Tokenizer, PutsThePairOfTheHighestScoreTogetherFirst) {
  const auto pieces = parse_llama2c_tokenizer(tokenizer_bytes(kPieces), "x.bin");
  const Tokenizer tokenizer(pieces, "x.bin");
  std::mt19937 random(0);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (auto length = 1 + random() % 30; length > 0; --length) {
      text += static_cast<char>("abc "[random() % 4]);
    }
    EXPECT_EQ(tokenizer.encode(text), slowly_encoded(pieces, text)) << text;
  }
}

TEST(Tokenizer, GivesBackWhatItWasGiven) {
  const auto tokenizer = tokenizer_of(kPieces);
  for (const std::string text : {"abc", " abc", "zebra\n", "naïve 日本 🙂", "a  a"}) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
  EXPECT_TRUE(tokenizer.encode("").empty());
}

TEST(Tokenizer, TakesBytesOfLettersThatAreNoPiece) {
  const auto tokenizer = tokenizer_of(kPieces);
  EXPECT_EQ(tokenizer.encode("\n"), (std::vector<int64_t>{259, 3 + 10}));
}

// Some files have bytes as they are, so that a comma is there twice.
TEST(Tokenizer, TakesAPieceRatherThanAByte) {
  auto pieces = parse_llama2c_tokenizer(tokenizer_bytes({" ", ","}), "x.bin");
  for (int byte = 0; byte < 256; ++byte) pieces[3 + byte].text = std::string(1, byte);
  const Tokenizer tokenizer(pieces, "x.bin");
  EXPECT_EQ(tokenizer.encode(",;"), (std::vector<int64_t>{259, 260, 3 + ';'}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(",;é")), ",;é");
}

TEST(Tokenizer, RefusesWhatIsNoTextAndNoToken) {
  const auto tokenizer = tokenizer_of(kPieces);
  EXPECT_EQ(error_of([&] { tokenizer.encode("\xff"); }), "tokenizer: text must be UTF-8");
  EXPECT_EQ(error_of([&] { tokenizer.decode({300}); }),
            "tokenizer: tokens must be from 0 to 299, got 300");
  EXPECT_EQ(error_of([] { Tokenizer({{.text = "a"}}, "x.bin"); }),
            "x.bin: needs a piece for each byte, at least 259 in all, has 1");
}

class RealTokenizer : public RealData {};

// The tokens of a sentence as llama2.c and SentencePiece give them.
TEST_F(RealTokenizer, EncodesAsLlamaDoes) {
  const auto path = data_folder() / "language" / "tokenizer.bin";
  const Tokenizer tokenizer(parse_llama2c_tokenizer(read_file(path), "x"), "x");
  EXPECT_EQ(tokenizer.encode("Once upon a time, \n"),
            (std::vector<int64_t>{9038, 2501, 263, 931, 29892, 29871, 13}));
  const auto text = read_file(data_folder() / "language" / "tinystories-sample.txt");
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
}

}  // namespace kelvin::tokenizer_test
