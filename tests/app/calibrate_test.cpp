#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kelvin/core/text.h"
#include "tests/support/command.h"
#include "tests/support/python.h"

namespace kelvin::calibrate_test {

// Dumps of logits that are three times too large for their labels.
void write_dumps(const TemporaryFolder& folder) {
  python_output(R"(
import sys
import numpy as np
rng = np.random.default_rng(0)
for name, n in zip(sys.argv[1:], (2000, 1000)):
    logits = rng.normal(size=(n, 5)) * 6
    labels = np.argmax(logits / 3 + rng.gumbel(size=logits.shape), axis=1)
    np.savez(name, logits=logits, labels=labels)
)",
                {folder / "val.npz", folder / "test.npz"});
}

// Enough of it that the network knows something.
std::vector<std::string> tiny_training(const std::string& output) {
  return {"train",
          "--model",
          "mlp",
          "--dataset",
          "glyphs10",
          "--train-samples",
          "500",
          "--test-samples",
          "64",
          "--validation-samples",
          "100",
          "--epochs",
          "10",
          "-b",
          "32",
          "--lr",
          "0.02",
          "-q",
          "model.width=32",
          "model.depth=2",
          "--output",
          output,
          "--measures",
          "accuracy"};
}

// By scaling and name.
std::map<std::string, double> values_of(const std::string& json) {
  std::map<std::string, double> values;
  const auto printed = nlohmann::json::parse(json);
  for (const auto& reading : printed.at("readings")) {
    values[reading.at("definition").at("scaling").get<std::string>() + " " +
           reading.at("name").get<std::string>()] = reading.at("value");
  }
  return values;
}

TEST(CalibrateVerb, FitsOnOneDumpAndTestsOnAnother) {
  const TemporaryFolder folder;
  write_dumps(folder);
  const std::vector<std::string> command = {"calibrate", folder / "val.npz", "--test",
                                            folder / "test.npz", "-q"};
  auto words = command;
  words.insert(words.end(), {"-o", "json", "--bins", "10", "--output", folder / "curves.npz"});
  const auto result = run_tool(words);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  auto values = values_of(result.out);
  EXPECT_EQ(values.size(), 22U);
  EXPECT_NEAR(values["temperature temperature"], 3, 0.3);
  EXPECT_LT(values["temperature ece"], values["none ece"] / 3);
  EXPECT_TRUE(std::filesystem::exists(folder / "curves.npz"));
  EXPECT_NE(result.out.find("\"bins\": 10"), std::string::npos);

  const auto text = run_tool(command, {"COLUMNS=120"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_TRUE(text.out.starts_with("scaling ")) << text.out;
  for (const char* column :
       {"T", "NLL", "Brier", "ECE", "ECE equal mass", "ECE class-wise", "MCE"}) {
    EXPECT_NE(text.out.find(column), std::string::npos) << column;
  }
  for (const char* row : {"\nnone ", "\ntemperature ", "\nvector "}) {
    EXPECT_NE(text.out.find(row), std::string::npos) << row;
  }
  EXPECT_EQ(text.err, "fitted on val.npz (2000 samples), tested on test.npz (1000)\n");
}

TEST(CalibrateVerb, StartsFromTheTemperatureItIsGiven) {
  const TemporaryFolder folder;
  write_dumps(folder);
  const auto result = run_tool({"calibrate", folder / "val.npz", "--test", folder / "test.npz",
                                "--eval-temperature", "3", "-q", "-o", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  auto values = values_of(result.out);
  EXPECT_NEAR(values["none nll"], values["temperature nll"], 1e-2);
  EXPECT_NEAR(values["temperature temperature"], 3, 0.3);
}

TEST(CalibrateVerb, CalibratesARunAndItsWeights) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  ASSERT_EQ(run_tool(tiny_training(run)).exit_code, 0);
  const auto result = run_tool({"calibrate", run, "-q", "-o", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GT(values_of(result.out)["temperature temperature"], 0);
  EXPECT_NE(whole_file(folder / "run/readings.jsonl").find("\"temperature\""), std::string::npos);
  const auto of_weights = run_tool({"calibrate", run + "/checkpoints/last/model.safetensors",
                                    "--model", "mlp", "--dataset", "glyphs10", "--test-samples",
                                    "64", "model.width=32", "model.depth=2", "-q", "-o", "md"});
  ASSERT_EQ(of_weights.exit_code, 0) << of_weights.err;
  EXPECT_TRUE(of_weights.out.starts_with("| scaling |")) << of_weights.out;
  EXPECT_NE(of_weights.err.find("fitted on a random half of the test split (32 samples)"),
            std::string::npos)
      << of_weights.err;
  for (const auto& line : split(of_weights.err, '\n')) EXPECT_LE(line.size(), 80U) << line;
}

TEST(CalibrateVerb, SaysInOneLineWhyThereIsNoTemperature) {
  const TemporaryFolder folder;
  python_output(
      "import sys, numpy as np\n"
      "logits = np.random.default_rng(0).normal(size=(50, 3))\n"
      "np.savez(sys.argv[1], logits=logits, labels=logits.argmax(axis=1))",
      {folder / "val.npz"});
  const auto result = run_tool({"calibrate", folder / "val.npz", "-q"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.out.find("\nnone "), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("\ntemperature "), std::string::npos) << result.out;
  EXPECT_TRUE(result.err.starts_with("warning: no temperature was fitted: ")) << result.err;
}

TEST(CalibrateVerb, RefusesInOneLine) {
  const TemporaryFolder folder;
  write_dumps(folder);
  const auto val = folder / "val.npz";
  const std::vector<std::pair<std::vector<std::string>, std::string>> refusals = {
      {{folder / "none.npz"}, folder / "none.npz: no such run or file"},
      {{val, "--test", folder / "none.npz"}, folder / "none.npz: no such file"},
      {{val, "--bins", "0"}, "measure.calibration.bins: must be from 1 to 65536, got 0"},
      {{val, "--bins", "x"}, "--bins: must be a whole number, got 'x'"},
      {{val, "--bins", "5", "measure.calibration.bins=5"},
       "--bins: contradicts measure.calibration.bins"},
      {{val, "--measures", "accuracy"}, "--measures: is the calibration here"},
      {{val, "--model", "mlp"}, "model.name: is for a file of weights"},
      {{val, "--output", "x.csv"}, "--output: must end in .npz, got 'x.csv'"},
      {{val, "--output", val}, "--output: is " + val + " itself"},
      {{val, "--test", folder / "test.npz", "--output", folder / "test.npz"},
       "--output: is " + (folder / "test.npz") + " itself"},
      {{val, "--output", folder / "no/x.npz"}, "--output: there is no folder "},
  };
  for (const auto& [words, message] : refusals) {
    std::vector<std::string> command = {"calibrate", "-q"};
    command.insert(command.end(), words.begin(), words.end());
    const auto result = run_tool(command);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_TRUE(result.err.starts_with("kelvin calibrate: " + message)) << result.err;
  }
  // A file that is no npz is one of weights.
  const auto result = run_tool({"calibrate", "/dev/null", "--test", val, "-q"});
  EXPECT_TRUE(result.err.starts_with("kelvin calibrate: --test: is for an npz to fit on; "))
      << result.err;
}

}  // namespace kelvin::calibrate_test
