#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/command.h"
#include "tests/support/language_files.h"

namespace kelvin::attention_test {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

CommandResult train_small(const std::string& output) {
  return run_tool({"attention", "train", "--steps", "5", "--seeds", "0,1", "--output", output, "-q",
                   "retrieval.width=8", "-o", "json"});
}

TEST(AttentionVerb, TrainsFitsAndEvaluates) {
  const TemporaryFolder folder;
  const auto trained = train_small(folder / "nets");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(nlohmann::json::parse(trained.out).at(1).at("seed"), 1);

  const auto fitted = run_tool({"attention", "fit", folder / "nets", "--sizes", "8,16", "--sets",
                                "20", "--beta", folder / "beta.toml", "-q"});
  ASSERT_EQ(fitted.exit_code, 0) << fitted.err;
  EXPECT_TRUE(has(fitted.out, "The published polynomial is largest, 2.4214, at 4.4124 nats"))
      << fitted.out;

  const auto evaluated = run_tool({"attention", "evaluate", folder / "nets", "--sizes", "16,64",
                                   "--sets", "20", "--maps", "adaptive,top_k:k=4", "--beta",
                                   folder / "beta.toml", "-q", "--output", folder / "page.html"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_TRUE(has(evaluated.out, "adaptive:fitted")) << evaluated.out;
  EXPECT_TRUE(has(whole_file(folder / "page.html"), "class=\"cell\""));

  const auto bounds =
      run_tool({"theory", "dispersion", folder / "nets", "--lengths", "16", "--sets", "10", "-q"});
  ASSERT_EQ(bounds.exit_code, 0) << bounds.err;
  EXPECT_TRUE(has(bounds.out, "0 of 20 sets")) << bounds.out;
}

TEST(AttentionVerb, InspectsALanguageModelWithTheTokenizerBesideIt) {
  const TemporaryFolder folder;
  std::ofstream(folder / "x.bin", std::ios::binary) << llama2c_bytes();
  std::ofstream(folder / "tokenizer.bin", std::ios::binary) << tokenizer_bytes({" ", "a", "b"});
  std::ofstream(folder / "text.txt") << std::string(50, 'a') << std::string(50, 'b');
  const auto inspected =
      run_tool({"attention", "inspect", folder / "x.bin", "--text", folder / "text.txt",
                "--generate", "3", "--prompt", "ab", "-q", "--output", folder / "page.html"});
  ASSERT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_TRUE(has(inspected.out, "It writes: ab")) << inspected.out;
  EXPECT_TRUE(has(inspected.out, "Each head with 1 to 16 keys")) << inspected.out;
  EXPECT_TRUE(has(whole_file(folder / "page.html"), "Entropy over ln n with 1 to 16 keys"));
}

struct AttentionRefusal {
  std::vector<std::string> words;
  std::string message;
};

TEST(AttentionVerb, RefusesInOneLine) {
  const TemporaryFolder folder;
  ASSERT_EQ(train_small(folder / "nets").exit_code, 0);
  std::ofstream(folder / "x.safetensors") << "no tensors";
  const std::vector<AttentionRefusal> refusals = {
      {{"attention"}, "a job is required; there are: evaluate, fit, inspect, train"},
      {{"attention", "train"}, "--output"},
      {{"attention", "train", "--output", folder / "a", "--attention", "sofmax"}, "softmax"},
      {{"attention", "train", "--output", folder / "a", "retrieval.seed=1"},
       "retrieval.seed: is what --seeds says"},
      {{"attention", "train", "--output", folder / "a", "retrieval.widht=8"}, "retrieval.width"},
      {{"attention", "train", "--output", folder / "nets"}, "was trained with other settings"},
      {{"attention", "evaluate", folder / "none"}, "no such file or folder"},
      {{"attention", "evaluate", folder / "x.safetensors"}, "x.safetensors"},
      {{"attention", "evaluate", folder / "nets", "--sizes", "0"}, "sizes must be from 1"},
      {{"attention", "evaluate", folder / "nets", "--maps", "topk"}, "top_k"},
      {{"attention", "fit", folder / "nets", "--least", "3", "--most", "2"}, "betas must go up"},
      {{"attention", "fit", folder / "nets", "--beta", folder / "x.safetensors"}, "exists already"},
      {{"attention", "inspect", folder / "none.bin"}, "needs a text (--text)"},
      {{"attention", "inspect", folder / "none.bin", "--text", "x"}, "none.bin"},
      {{"attention", "inspect", folder / "x.safetensors", "--text", "x"},
       "is no checkpoint of llama2.c: has 10 bytes, its header alone 28"},
      {{"theory", "dispersion", folder / "nets", "--spreads", "3"},
       "--spreads: are those of the networks"}};
  for (const auto& refusal : refusals) {
    const auto result = run_tool(refusal.words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_TRUE(has(result.err, refusal.message)) << result.err;
  }
}

}  // namespace kelvin::attention_test
