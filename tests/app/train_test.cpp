#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <regex>
#include <thread>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/fake_run.h"

namespace kelvin::train_test {

namespace fs = std::filesystem;

// The smallest run there is: seconds with LibTorch, most of them spent loading it.
std::vector<std::string> tiny_run(const std::string& output) {
  return {"train",
          "--model",
          "mlp",
          "--dataset",
          "glyphs100",
          "--epochs",
          "1",
          "-b",
          "50",
          "--threads",
          "1",
          "--output",
          output,
          "data.train_samples=200",
          "data.test_samples=100",
          "measure.epoch_samples=50",
          "measure.train_samples=100"};
}

std::vector<std::string> with(std::vector<std::string> arguments,
                              const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

struct BadInput {
  std::string name;
  std::vector<std::string> arguments;
  std::vector<std::string> expected;  // each on stderr
};

std::ostream& operator<<(std::ostream& stream, const BadInput& bad) { return stream << bad.name; }

class TrainRefuses : public testing::TestWithParam<BadInput> {};

TEST_P(TrainRefuses, WithOneLineAndCode2AndNothingWritten) {
  const TemporaryFolder folder;
  const auto result = run_tool(with(tiny_run(folder / "run"), GetParam().arguments));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_EQ(result.err.rfind("kelvin train: ", 0), 0U) << result.err;
  for (const auto& text : GetParam().expected) {
    EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

INSTANTIATE_TEST_SUITE_P(
    BadInput, TrainRefuses,
    testing::Values(
        BadInput{"Model", {"model.name=resnet01"}, {"no model named 'resnet01'"}},
        BadInput{"Dataset", {"data.name=glyph100"}, {"no dataset named 'glyph100'", "glyphs100"}},
        BadInput{"Ood", {"--ood", "nowhere"}, {"no dataset named 'nowhere'"}},
        BadInput{"Measure", {"--measures", "solution_rnk"}, {"solution_rnk", "solution_rank"}},
        BadInput{"Key", {"train.temprature=3"}, {"did you mean 'train.temperature'?"}},
        BadInput{"Section", {"trian.lr=3"}, {"trian", "did you mean 'train'?"}},
        BadInput{"TemperatureOfZero", {"-T", "0"}, {"train.temperature", "got 0"}},
        BadInput{"NegativeTemperature", {"-T", "-1"}, {"train.temperature", "got -1"}},
        BadInput{"TemperatureBeyondFloat", {"-T", "1e-46"}, {"train.temperature", "got 1e-46"}},
        BadInput{"TemperatureBelowRange", {"-T", "1e-30"}, {"train.temperature", "got 1e-30"}},
        BadInput{"ScaleBeyondFloat", {"init.scale=1e30"}, {"init.scale = 1e+30", "logits"}},
        BadInput{"TemperatureNan", {"-T", "nan"}, {"train.temperature", "got nan"}},
        BadInput{"InfiniteTemperature", {"--temperature", "inf"}, {"train.temperature", "got inf"}},
        BadInput{"NoEpochs", {"train.epochs=0"}, {"train.epochs", "got 0"}},
        BadInput{"NegativeSeed", {"--seed", "-3"}, {"seed", "got -3"}},
        BadInput{"Schedule", {"--sched", "sometimes"}, {"sometimes"}}),
    [](const auto& tested) { return tested.param.name; });

TEST(TrainVerb, RefusesAFolderThatHoldsARun) {
  const TemporaryFolder folder;
  write_fake_run(folder.path() / "run", 1, 0, 90);
  const auto before = whole_file(folder / "run/config.toml");
  const auto result = run_tool(tiny_run(folder / "run"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("already holds a run"), std::string::npos) << result.err;
  EXPECT_EQ(whole_file(folder / "run/config.toml"), before);
}

TEST(TrainVerb, RefusesAnOutputThatCannotBeWritten) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "text");
  std::vector<std::string> outputs = {folder / "file", folder / "file/run", "/proc/kelvin/run"};
  if (::geteuid() != 0) {
    fs::create_directory(folder / "locked");
    fs::permissions(folder / "locked", fs::perms::owner_read | fs::perms::owner_exec);
    outputs.push_back(folder / "locked/run");
  }
  for (const auto& output : outputs) {
    const auto result = run_tool(tiny_run(output));
    EXPECT_EQ(result.exit_code, 2) << output;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(output), std::string::npos) << result.err;
  }
  EXPECT_EQ(whole_file(folder / "file"), "text");
}

TEST(TrainVerb, PrintsTheResolvedConfigAndItsCostsWithoutRunning) {
  const TemporaryFolder folder;
  const auto result = run_tool(with(tiny_run(folder / "run"), {"--dry-run", "-T", "7"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto config = Config::parse(result.out, "stdout");
  EXPECT_EQ(config.at("train.temperature"), 7);
  EXPECT_EQ(config.at("train.epochs"), 1);
  EXPECT_TRUE(config.has("train.lr"));
  EXPECT_NE(result.out.find("# parameters: "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("# estimated time: about "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("# estimated disk: about "), std::string::npos) << result.out;
  // Estimates and norms to a few digits.
  EXPECT_FALSE(std::regex_search(result.out, std::regex("\n# [^\n]*\\.[0-9]{7}"))) << result.out;
  EXPECT_TRUE(fs::is_empty(folder.path()));
  const auto csv = run_tool(with(tiny_run(folder / "run"), {"--dry-run", "-o", "csv"}));
  EXPECT_NE(csv.out.find("\ntrain.epochs,1\n"), std::string::npos) << csv.out;
  EXPECT_NE(csv.out.find("\nestimated_disk_bytes,"), std::string::npos) << csv.out;
}

TEST(TrainVerb, TakesReferenceOpsUnderTheirFormerNameAsWell) {
  const TemporaryFolder folder;
  const auto resolved = [&](const std::vector<std::string>& flags) {
    const auto result = run_tool(with(tiny_run(folder / "run"), with({"--dry-run"}, flags)));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Config::parse(result.out, "stdout").values();
  };
  const auto expected = resolved({"--reference-ops"});
  EXPECT_EQ(expected.at("train.plain"), true);
  EXPECT_EQ(resolved({"--plain"}), expected);
  EXPECT_EQ(resolved({"--plain", "--reference-ops"}), expected);
  EXPECT_EQ(resolved({}).at("train.plain"), false);
  const auto help = run_tool({"train", "--help"}).out;
  EXPECT_NE(help.find("--reference-ops"), std::string::npos) << help;
  EXPECT_EQ(help.find("--plain"), std::string::npos) << help;
}

TEST(TrainVerb, PrefersFlagsToTheFileAndAssignmentsToFlags) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file.toml",
                        "seed = 1\n[train]\nlr = 0.1\nepochs = 11\nbatch_size = 32\n");
  const auto result = run_tool({"train", "--dry-run", "--config", folder / "file.toml", "--lr",
                                "0.2", "--epochs", "12", "train.epochs=13"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto config = Config::parse(result.out, "stdout");
  EXPECT_EQ(config.at("train.batch_size"), 32);
  EXPECT_EQ(config.at("train.lr"), 0.2);
  EXPECT_EQ(config.at("train.epochs"), 13);
  EXPECT_EQ(config.at("seed"), 1);
}

TEST(TrainVerb, TakesSettingsFromAPipe) {
  const auto line = "echo seed = 77 | " + std::string(KELVIN_TOOL) +
                    " train --dry-run --config /dev/stdin --model mlp";
  const auto result = StartedCommand({"/bin/sh", "-c", line}).wait();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Config::parse(result.out, "stdout").at("seed"), 77);
}

TEST(TrainVerb, TakesAFolderWhoseNameIsNotUtf8) {
  const TemporaryFolder folder;
  const auto name = folder / "run\xff";
  const auto result = run_tool(with(tiny_run(name), {"--quiet"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(load_run(name).status, RunStatus::finished);
}

TEST(TrainVerb, LeavesARunThatOtherVerbsRead) {
  const TemporaryFolder folder;
  const auto result = run_tool(with(tiny_run(folder / "run"), {"--quiet"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_NE(result.out.find("solution rank"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(folder / "run"), std::string::npos) << result.out;

  const auto run = load_run(folder / "run");
  EXPECT_EQ(run.status, RunStatus::finished);
  for (const char* key : {"version", "commit", "command", "started", "versions", "machine"}) {
    EXPECT_TRUE(run.metadata.contains(key)) << key;
  }
  EXPECT_EQ(run.metadata.at("versions").at("threads"), 1);

  const auto measured = run_tool({"measure", folder / "run", "-o", "json", "--quiet"});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  const auto readings = nlohmann::json::parse(measured.out).at("readings");
  EXPECT_TRUE(std::any_of(readings.begin(), readings.end(), [](const auto& reading) {
    return reading.at("name") == "solution_rank" && reading.at("definition").contains("gamma");
  }));
}

TEST(TrainVerb, StopsWhenInterruptedAndLeavesAReadableRun) {
  const TemporaryFolder folder;
  StartedCommand command(tool_words(with(tiny_run(folder / "run"), {"train.epochs=100000"})));
  for (int i = 0; i < 600 && !fs::exists(folder / "run/metrics.jsonl"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  command.send(SIGINT);
  const auto result = command.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_EQ(load_run(folder / "run").status, RunStatus::stopped);
}

}  // namespace kelvin::train_test
