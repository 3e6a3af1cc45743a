#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/command.h"

namespace kelvin::main_test {

double median_seconds(const std::vector<std::string>& arguments) {
  std::vector<double> seconds(7);
  for (auto& each : seconds) each = run_tool(arguments).seconds;
  std::nth_element(seconds.begin(), seconds.begin() + 3, seconds.end());
  return seconds[3];
}

int64_t lines_in(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(Tool, HelpListsEveryVerb) {
  const auto result = run_tool({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* verb : {"data", "demo", "info", "list", "measure", "report", "runs", "train"}) {
    EXPECT_NE(result.out.find(std::string("\n  ") + verb + " "), std::string::npos) << verb;
  }
}

TEST(Tool, EveryVerbExplainsItself) {
  for (const char* verb : {"data", "demo", "info", "list", "measure", "report", "runs", "train"}) {
    for (const char* flag : {"-h", "--help"}) {
      const auto result = run_tool({verb, flag});
      EXPECT_EQ(result.exit_code, 0) << verb;
      EXPECT_NE(result.out.find(std::string("Usage: kelvin ") + verb), std::string::npos)
          << result.out;
      EXPECT_EQ(result.err, "");
    }
  }
}

TEST(Tool, AnswersHelpAndVersionInUnder100Milliseconds) {
  EXPECT_LT(median_seconds({"--help"}), 0.1);
  EXPECT_LT(median_seconds({"--version"}), 0.1);
  EXPECT_LT(median_seconds({"train", "--help"}), 0.1);
}

TEST(Tool, PrintsItsVersion) {
  const auto result = run_tool({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out.rfind("kelvin ", 0), 0U) << result.out;
}

struct BadUsage {
  std::vector<std::string> arguments;
  std::string expected;  // on stderr
};

TEST(Tool, AnswersBadUsageWithOneLineAndCode2) {
  const std::vector<BadUsage> cases = {
      {{}, "a verb is required"},
      {{"--bogus"}, "no flag '--bogus'"},
      {{"trian"}, "did you mean 'train'?"},
      {{"xyzzy"}, "There are: attention, bench, calibrate, compare, completion"},
      {{"train", "--epoch", "3"}, "kelvin train: no flag '--epoch'; did you mean '--epochs'?"},
      {{"train", "--lr", "abc", "--output", "x"}, "--lr: must be a number, got 'abc'"},
      {{"train", "--epochs", "1.5", "--output", "x"},
       "--epochs: must be a whole number, got '1.5'"},
      {{"train", "--epochs"}, "--epochs"},
      {{"train", "--measures", "a,,b", "--output", "x"}, "--measures: must be names"},
      {{"train", "--threads", "0", "--output", "x"}, "--threads: must be from 1"},
      {{"train", "--config", "/nowhere.toml", "--output", "x"}, "/nowhere.toml: cannot read"},
      {{"train"}, "--output: required unless --dry-run"},
      {{"train", "recipe.toml", "--output", "x"}, "'recipe.toml': must be key=value"},
      {{"demo", "--jobs", "0"}, "--jobs: must be at least 1, got 0"},
      {{"demo", "--scale", "gigantic"}, "no scale 'gigantic'"},
      {{"list", "modls"}, "did you mean 'models'?"},
      {{"list", "models", "more"}, "unexpected argument 'more'"},
      {{"list", "models", "-o", "xml"}, "kelvin list: --format: must be text, md"},
      {{"runs"}, "DIR is required"},
      {{"runs", "/nowhere"}, "/nowhere: no such folder"},
      {{"report"}, "RUN is required"},
      {{"report", "/nowhere"}, "/nowhere: no such folder"},
      {{"measure", "/nowhere.npz"}, "/nowhere.npz: no such run or file"},
      {{"measure", "/"}, "is not a run folder"},
  };
  for (const auto& bad : cases) {
    const auto result = run_tool(bad.arguments);
    EXPECT_EQ(result.exit_code, 2) << bad.expected;
    EXPECT_EQ(result.out, "") << bad.expected;
    EXPECT_EQ(lines_in(result.err), 1) << result.err;
    EXPECT_EQ(result.err.rfind("kelvin", 0), 0U) << result.err;
    EXPECT_NE(result.err.find(bad.expected), std::string::npos) << result.err;
  }
}

// A folder of a sweep may be called as a setting is.
TEST(Tool, TellsPathsFromSettings) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "lr=0.1");
  const auto in_folder = [&](const std::string& words) {
    const auto line = "cd " + folder.path().string() + " && " KELVIN_TOOL " " + words;
    return StartedCommand({"/bin/sh", "-c", line}).wait().err;
  };
  EXPECT_EQ(in_folder("measure lr=0.1"),
            "kelvin measure: INPUT is required; 'lr=0.1' is read as a setting, write ./lr=0.1 if "
            "it is a path\n");
  EXPECT_EQ(in_folder("measure ./lr=0.1"),
            "kelvin measure: ./lr=0.1: is not a run folder (no config.toml)\n");
  // Settings may come first.
  EXPECT_EQ(in_folder("measure measure.memory=1GiB /nowhere"),
            "kelvin measure: /nowhere: no such run or file\n");
}

TEST(Tool, TakesNoFlagsBehindTwoDashes) {
  EXPECT_EQ(run_tool({"list", "--", "losses"}).out, run_tool({"list", "losses"}).out);
  EXPECT_EQ(run_tool({"measure", "--", "--help"}).err,
            "kelvin measure: --help: no such run or file\n");
}

TEST(Tool, SaysThatItsOutputCouldNotBeWritten) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const auto result =
      StartedCommand({"/bin/sh", "-c", std::string(KELVIN_TOOL) + " list models >/dev/full"})
          .wait();
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "kelvin list: stdout: cannot write: No space left on device\n");
}

TEST(Tool, SurvivesAStderrThatTakesNothing) {
  const std::string line = std::string(KELVIN_TOOL) + " list nonsense 2>/dev/full";
  EXPECT_EQ(StartedCommand({"/bin/sh", "-c", line}).wait().exit_code, 2);
}

TEST(Tool, SaysThatStdoutTakesNothing) {
  const std::string line = std::string(KELVIN_TOOL) + " --help >/dev/full";
  const auto result = StartedCommand({"/bin/sh", "-c", line}).wait();
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("No space left"), std::string::npos) << result.err;
}

TEST(Tool, ShowsTextOfFilesAsOneShortLineWithoutControlCharacters) {
  const TemporaryFolder folder;
  const std::string strange = "\x1b[31m\x07\u009b\xff";
  const std::vector<std::pair<std::string, std::string>> files = {
      {"strange.toml", "\"" + std::string("\\u001b[31m\\u0007") + "\" = 1\n"},
      {"value.toml", "[train]\nloss = \"\\u001b[31m\\n" + std::string(1'000'000, 'x') + "\"\n"},
      {"key.toml", "[train]\n\"" + std::string(1'000'000, 'y') + "\" = 1\n"},
      {"bytes.toml", strange}};
  for (const auto& [name, content] : files) {
    std::ofstream(folder / name, std::ios::binary) << content;
    const auto result = run_tool({"train", "--model", "mlp", "--dataset", "glyphs10", "--dry-run",
                                  "--config", folder / name});
    EXPECT_EQ(result.exit_code, 2) << name << result.err.substr(0, 300);
    EXPECT_EQ(lines_in(result.err), 1) << name;
    EXPECT_LT(result.err.size(), 3000U) << name;
    EXPECT_EQ(result.err.find_first_of("\x1b\x07\xff"), std::string::npos) << name;
  }
  const auto path = run_tool({"report", folder / ("no\n" + strange)});
  EXPECT_EQ(path.exit_code, 2);
  EXPECT_EQ(lines_in(path.err), 1) << path.err;
  EXPECT_EQ(path.err.find_first_of("\x1b\x07\xff"), std::string::npos);
}

}  // namespace kelvin::main_test
