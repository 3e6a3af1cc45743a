#include "kelvin/experiment/tasks/inspect_language.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "kelvin/core/files.h"
#include "kelvin/language/decoder_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/language_files.h"

namespace kelvin::inspect_language_test {

class InspectLanguage : public testing::Test {
 protected:
  void SetUp() override {
    write_file_atomically(folder_ / "x.bin", llama2c_bytes());
    write_file_atomically(folder_ / "tokenizer.bin", tokenizer_bytes({" ", "a", "b", "ab"}));
    std::string text;
    for (int i = 0; i < 60; ++i) text += i % 3 == 0 ? "ab" : "ba b";
    write_file_atomically(folder_ / "text.txt", text);
  }

  InspectLanguageRequest request() const {
    return {.model = folder_ / "x.bin",
            .tokenizer = folder_ / "tokenizer.bin",
            .text = folder_ / "text.txt",
            .window = 40};
  }

  TemporaryFolder folder_;
};

TEST_F(InspectLanguage, GivesReadingsOfEachHeadRangeAndMap) {
  const auto inspected = inspect_language(request(), {});
  std::map<std::string, int> count;
  for (const auto& reading : inspected.readings) {
    ++count[reading.name];
    EXPECT_EQ(reading.definition.at("context"), 16);
    if (reading.name == "dispersion_violations") {
      EXPECT_EQ(reading.value, 0) << reading.definition;
    }
  }
  // Keys 1 to 16, 17 to 32 and 33 to 40 of two layers of two heads, for two maps.
  EXPECT_EQ(count.at("attention_entropy_nats"), 3 * 4 * 2);
  EXPECT_EQ(count.at("logit_spread"), 2 * 3 * 4 * 2);
  EXPECT_EQ(count.at("attention_logits_rank"), 4);
  EXPECT_EQ(count.at("attention_shares_rank"), 4);
  // The same ranges, and within and beyond the context.
  EXPECT_EQ(count.at("perplexity"), (3 + 2) * 2);
  ASSERT_EQ(inspected.heat.size(), 2U);
  EXPECT_EQ(inspected.heat[0].rows.size(), 16U);
}

// From the decoder's own logits, token by token.
TEST_F(InspectLanguage, GivesPerplexityOfTheTokensThatARangeTells) {
  const auto decoder = read_decoder(folder_ / "x.bin");
  const auto tokenizer = read_tokenizer(folder_ / "tokenizer.bin", decoder);
  const auto tokens = tokenizer.encode(read_file(folder_ / "text.txt"));
  ASSERT_GT(tokens.size(), 78U);
  double sum = 0;
  int64_t count = 0;
  for (size_t from = 0; from < tokens.size(); from += 39) {
    std::vector<int64_t> window = {Tokenizer::kBegin};
    for (size_t i = from; i < std::min(from + 39, tokens.size()); ++i) window.push_back(tokens[i]);
    const torch::NoGradGuard no_grad;
    const auto logits = decoder.logits(torch::tensor(window, torch::kInt64).unsqueeze(0))[0];
    for (size_t place = 17; place <= 32 && place < window.size(); ++place) {
      const auto all = torch::log_softmax(logits[static_cast<int64_t>(place) - 1], 0);
      sum -= all[window[place]].item<double>();
      ++count;
    }
  }
  bool is_there = false;
  for (const auto& reading : inspect_language(request(), {}).readings) {
    const bool is_it =
        reading.name == "perplexity" && reading.definition.at("first_position") == 17 &&
        reading.definition.at("part") == "range" && reading.definition.at("attention") == "softmax";
    if (!is_it) continue;
    is_there = true;
    EXPECT_EQ(reading.definition.at("last_position"), 32);
    EXPECT_EQ(reading.definition.at("tokens"), count);
    EXPECT_NEAR(reading.value, std::exp(sum / static_cast<double>(count)), 1e-4 * reading.value);
  }
  EXPECT_TRUE(is_there);
}

// A model that knows nothing is as surprised as by a die with as many sides as there are tokens.
TEST_F(InspectLanguage, GivesAnEmptyModelThePerplexityOfItsVocabulary) {
  auto bytes = llama2c_bytes();
  std::fill(bytes.begin() + 28, bytes.end(), '\0');
  write_file_atomically(folder_ / "x.bin", bytes);
  for (const auto& reading : inspect_language(request(), {}).readings) {
    if (reading.name == "perplexity") {
      EXPECT_NEAR(reading.value, 300, 1e-9);
    }
  }
}

TEST_F(InspectLanguage, ChangesNothingWithAMapThatIsSoftmax) {
  auto same = request();
  same.maps = {"adaptive:coefficients=[0.0, 0.0, 0.0, 0.0, 1.0]"};
  std::map<std::string, double> own;
  for (const auto& reading : inspect_language(same, {}).readings) {
    if (reading.name != "perplexity") continue;
    auto meaning = reading.definition;
    meaning.erase("attention");
    const auto [found, is_new] = own.emplace(meaning.dump(), reading.value);
    if (!is_new) {
      EXPECT_NEAR(reading.value, found->second, 1e-4 * reading.value);
    }
  }
  EXPECT_EQ(own.size(), 5U);
}

TEST_F(InspectLanguage, WritesOnBehindAPrompt) {
  auto writing = request();
  writing.text.clear();
  writing.prompt = "ab a";
  writing.generate = 5;
  const auto inspected = inspect_language(writing, {});
  EXPECT_TRUE(inspected.written.starts_with("ab a")) << inspected.written;
  EXPECT_TRUE(inspected.readings.empty());
}

TEST_F(InspectLanguage, SaysInOneLineWhatDoesNotFit) {
  const auto error = [&](const auto& change) {
    auto changed = request();
    change(changed);
    return error_of([&] { inspect_language(changed, {}); });
  };
  EXPECT_EQ(error([](auto& r) { r.window = 1; }),
            "--window: must be 2 tokens or more, or 0 for four times the context, got 1");
  EXPECT_EQ(error([](auto& r) { r.tokens = 0; }), "--tokens: must be at least 2, got 0");
  EXPECT_EQ(error([](auto& r) { r.generate = -1; }), "--generate: must not be below 0, got -1");
  EXPECT_EQ(error([](auto& r) { r.gamma = 1; }), "--gamma: must be in (0, 1), got 1");
  EXPECT_EQ(error([](auto& r) { r.text.clear(); }),
            "attention inspect: needs a text (--text) or something to write (--generate)");
  write_file_atomically(folder_ / "text.txt", "a\xff");
  EXPECT_EQ(error([](auto&) {}), (folder_ / "text.txt") + ": must be text in UTF-8");
  write_file_atomically(folder_ / "text.txt", "");
  EXPECT_EQ(error([](auto&) {}), (folder_ / "text.txt") + ": needs at least two tokens, has 0");
}

TEST_F(InspectLanguage, StopsWhenAsked) {
  EXPECT_EQ(error_of([&] { inspect_language(request(), {.should_stop = [] { return true; }}); }),
            "stopped at softmax; nothing is shown");
}

}  // namespace kelvin::inspect_language_test
