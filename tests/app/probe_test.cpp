#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/command.h"

namespace kelvin::probe_test {

std::vector<std::string> tiny_training(const std::string& output) {
  return {
      "train",         "--model",        "mlp",      "--dataset", "glyphs10",   "--train-samples",
      "128",           "--test-samples", "64",       "--epochs",  "2",          "-q",
      "model.width=8", "model.depth=2",  "--output", output,      "--measures", "accuracy"};
}

TEST(ProbeVerb, ProbesARunInAndOutOfDistribution) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  ASSERT_EQ(run_tool(tiny_training(run)).exit_code, 0);
  const auto result = run_tool({"probe", run, "--ood", "textures10", "-q", "-o", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::map<std::string, int> counts;
  const auto printed = nlohmann::json::parse(result.out);
  for (const auto& reading : printed.at("readings")) {
    ++counts[reading.at("name").get<std::string>() + " " + reading.value("ood", "")];
  }
  EXPECT_EQ(counts["probe_accuracy "], 2);
  EXPECT_EQ(counts["probe_accuracy textures10"], 2);
  EXPECT_EQ(counts["kappa "], 2);
  EXPECT_EQ(counts["rho textures10"], 1);
}

TEST(ProbeVerb, RefusesInOneLine) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  EXPECT_EQ(run_tool({"probe", run}).err, "kelvin probe: " + run + ": no such run or file\n");
  ASSERT_EQ(run_tool(tiny_training(run)).exit_code, 0);
  const std::vector<std::pair<std::vector<std::string>, std::string>> refusals = {
      {{"--measures", "accuracy"}, "--measures: are the probes here; see 'kelvin measure'"},
      {{"--probe", "guess"}, "measure.linear_probe.protocol: must be "},
      {{"--model", "mlp"}, "model.name: is for a file of weights; " + run},
  };
  for (const auto& [words, message] : refusals) {
    std::vector<std::string> command = {"probe", run, "-q"};
    command.insert(command.end(), words.begin(), words.end());
    const auto result = run_tool(command);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_TRUE(result.err.starts_with("kelvin probe: " + message)) << result.err;
  }
}

TEST(TruncateVerb, WritesANetworkThatCanBeMeasured) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const std::string file = folder / "cut.safetensors";
  ASSERT_EQ(run_tool(tiny_training(run)).exit_code, 0);
  const auto result =
      run_tool({"truncate", run, "--layer", "layers.0", "--output", file, "-q", "-o", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto cut = nlohmann::json::parse(result.out).at("truncated");
  EXPECT_NE(result.err.find("--model truncated model.of=mlp model.layer=layers.0"),
            std::string::npos)
      << result.err;
  const auto measured =
      run_tool({"measure", file, "--model", "truncated", "model.of=mlp", "model.layer=layers.0",
                "model.width=8", "model.depth=2", "--dataset", "glyphs10", "--train-samples", "128",
                "--test-samples", "64", "--measures", "accuracy", "-q", "-o", "json"});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  const auto printed = nlohmann::json::parse(measured.out);
  for (const auto& reading : printed.at("readings")) {
    if (reading.at("name") != "accuracy" || reading.at("split") != "test") continue;
    EXPECT_EQ(reading.at("value"), cut.at("accuracy"));
  }
  const auto text = run_tool({"truncate", run, "-q"});
  EXPECT_NE(text.out.find("and its probe"), std::string::npos) << text.out;
}

TEST(TruncateVerb, RefusesInOneLine) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  ASSERT_EQ(run_tool(tiny_training(run)).exit_code, 0);
  const std::vector<std::pair<std::vector<std::string>, std::string>> refusals = {
      {{"--layer", "fc9"}, "--layer: there is no layer 'fc9'"},
      {{"--output", folder / "cut.pt"}, "--output: must end in .safetensors"},
      {{"--output", folder / "no/cut.safetensors"}, "--output: there is no folder "},
  };
  for (const auto& [words, message] : refusals) {
    std::vector<std::string> command = {"truncate", run, "-q"};
    command.insert(command.end(), words.begin(), words.end());
    const auto result = run_tool(command);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_TRUE(result.err.starts_with("kelvin truncate: " + message)) << result.err;
  }
}

}  // namespace kelvin::probe_test
