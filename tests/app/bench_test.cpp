#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/command.h"

namespace kelvin::bench_test {

// A short bench of `model`, with `more` at the end.
CommandResult short_bench(const std::string& model, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"bench",        "train", "--model",  model,
                                    "--batch-size", "8",     "--rounds", "1",
                                    "--steps",      "2",     "-q"};
  words.insert(words.end(), more.begin(), more.end());
  return run_tool(words, {"COLUMNS=200"});  // where a header is one line
}

const std::vector<std::string> kTinyMlp = {"model.width=32", "model.depth=2"};

std::vector<std::string> operator+(std::vector<std::string> words,
                                   const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

int64_t lines_in(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

void expect_numbers(const nlohmann::json& side) {
  EXPECT_GT(side.at("images_per_second").get<double>(), 0);
  EXPECT_EQ(side.at("images_per_second_of_rounds").size(), 1U);
  EXPECT_EQ(side.at("first_losses").size(), 3U);
  EXPECT_GT(side.at("peak_memory_bytes").get<int64_t>(), 1 << 20);
}

TEST(BenchTrain, TimesKelvinAlone) {
  const auto result =
      short_bench("mlp", kTinyMlp + std::vector<std::string>{"--without-pytorch", "-o", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const auto document = nlohmann::json::parse(result.out);
  ASSERT_EQ(document.at("rows").size(), 1U);
  const auto& row = document.at("rows").at(0);
  EXPECT_EQ(row.at("name"), "mlp");
  EXPECT_EQ(row.at("precision"), "fp32");
  EXPECT_EQ(row.at("batch_size"), 8);
  EXPECT_EQ(row.at("macs_per_image"), 3072 * 32 + 32 * 10);
  EXPECT_FALSE(row.contains("pytorch"));
  const auto& kelvin = row.at("kelvin");
  expect_numbers(kelvin);
  const auto of = [&](const char* key) { return kelvin.at(key).get<double>(); };
  const double parts = of("data_ms") + of("forward_ms") + of("backward_ms") + of("optimizer_ms");
  EXPECT_GT(parts, 0.5 * of("step_ms"));
  EXPECT_LE(parts, of("step_ms"));
  EXPECT_NEAR(of("images_per_second"), 8e3 / of("step_ms"), 1e-6 * of("images_per_second"));
  EXPECT_NEAR(of("gflops"), 6e-9 * row.at("macs_per_image").get<double>() * of("images_per_second"),
              1e-6 * of("gflops"));
  EXPECT_NEAR(row.at("share_of_peak").get<double>(),
              of("gflops") / row.at("peak_gflops").get<double>(), 1e-9);
  EXPECT_TRUE(document.contains("machine"));
}

TEST(BenchTrain, TakesReferenceOpsUnderTheirFormerNameAsWell) {
  const auto first_losses = [](const char* flag) {
    const auto result =
        short_bench("mlp", kTinyMlp + std::vector<std::string>{"--without-pytorch", "--threads",
                                                               "1", "-o", "json", flag});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out).at("rows").at(0).at("kelvin").at("first_losses");
  };
  EXPECT_EQ(first_losses("--plain"), first_losses("--reference-ops"));
  const auto help = run_tool({"bench", "train", "--help"}).out;
  EXPECT_NE(help.find("--reference-ops"), std::string::npos) << help;
  EXPECT_EQ(help.find("--plain"), std::string::npos) << help;
}

TEST(BenchTrain, AgreesWithPyTorch) {
  const auto result = short_bench("mlp", kTinyMlp + std::vector<std::string>{"-o", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto row = nlohmann::json::parse(result.out).at("rows").at(0);
  expect_numbers(row.at("kelvin"));
  expect_numbers(row.at("pytorch"));
  for (size_t i = 0; i < 3; ++i) {
    const auto ours = row.at("kelvin").at("first_losses").at(i).get<double>();
    const auto theirs = row.at("pytorch").at("first_losses").at(i).get<double>();
    EXPECT_NEAR(ours, theirs, 1e-4 * theirs);
  }
  const auto theirs = row.at("pytorch").at("gflops").get<double>();
  EXPECT_NEAR(row.at("aim").get<double>(),
              std::clamp(0.85 * row.at("peak_gflops").get<double>() / theirs, 1.0, 1.5), 1e-9);
  EXPECT_NEAR(row.at("ratio").at("median").get<double>(),
              row.at("kelvin").at("images_per_second").get<double>() /
                  row.at("pytorch").at("images_per_second").get<double>(),
              1e-9);
}

// Every family of networks that PyTorch's side has, small.
TEST(BenchTrainSlow, AgreesWithPyTorchOnNetworksOfAllFamilies) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> networks = {
      {"resnet20", {"model.width=0.25"}},
      {"resnet18", {"model.width=0.125", "--precision", "bf16"}},
      {"vgg11_bn", {"model.width=0.0625"}},
      {"vit_tiny", {"model.depth=2", "model.width=0.25"}},
      {"vit_tiny", {"model.depth=2", "model.patch=8", "--precision", "bf16"}},
  };
  for (const auto& [model, settings] : networks) {
    const auto result = short_bench(model, settings);
    EXPECT_EQ(result.exit_code, 0) << model << ": " << result.err;
    EXPECT_NE(result.out.find("PyTorch images/s"), std::string::npos) << result.out;
  }
}

TEST(BenchTrain, GoesOnWithoutPyTorch) {
  const auto result = short_bench("mlp", kTinyMlp + std::vector<std::string>{"--python", "/no/py"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "no PyTorch to compare with: /no/py: no such program\n");
  EXPECT_NE(result.out.find("kelvin images/s"), std::string::npos) << result.out;
}

TEST(BenchTrain, RefusesInOneLine) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> refusals = {
      {{"--model", "mlpp"}, "kelvin bench train: no model named 'mlpp'; did you mean 'mlp'?"},
      {{"--model", "mlp", "model.wdth=3"}, "kelvin bench train: model.wdth: no such setting"},
      {{"--model", "mlp", "--precision", "fp8"},
       "kelvin bench train: train.precision: must be fp32"},
      {{"--rounds", "0"}, "kelvin bench train: --rounds: must be from 1 to 1000, got 0"},
      {{"--steps", "x"}, "kelvin bench train: --steps: must be a whole number, got 'x'"},
      {{"--model", "mlp", "model.width=8", "train.optimizer=adam"},
       "kelvin bench train: PyTorch's side knows train.optimizer = \"sgd\" only, got \"adam\"; see "
       "--without-pytorch"},
  };
  for (const auto& [words, message] : refusals) {
    const auto result = run_tool(std::vector<std::string>{"bench", "train", "-q"} + words);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(lines_in(result.err), 1) << result.err;
    EXPECT_TRUE(result.err.starts_with(message)) << result.err;
  }
}

// What only the tool starts, as its own side of a race.
TEST(BenchStep, IsNamedNowhere) {
  const auto help = run_tool({"bench", "--help"});
  EXPECT_EQ(help.exit_code, 0) << help.err;
  EXPECT_NE(help.out.find("\n  train"), std::string::npos) << help.out;
  EXPECT_EQ(help.out.find("\n  step"), std::string::npos) << help.out;
  EXPECT_EQ(run_tool({"bench"}).err, "kelvin bench: a job is required; there are: train\n");
  EXPECT_EQ(run_tool({"bench", "xyzzy"}).err, "kelvin bench: no job 'xyzzy'. There are: train\n");
}

TEST(BenchStep, AnswersWithOneErrorToWhatIsNoOrder) {
  const auto result = run_tool({"bench", "step"});  // nothing on stdin
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(lines_in(result.out), 1);
  EXPECT_TRUE(nlohmann::json::parse(result.out).contains("error")) << result.out;
}

}  // namespace kelvin::bench_test
