#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "kelvin/core/files.h"
#include "kelvin/core/text.h"
#include "kelvin/runs/run_folder.h"
#include "tests/support/command.h"
#include "tests/support/fake_run.h"

namespace kelvin::runs_test {

TEST(RunsVerb, ShowsSettingsAndResultsOfEveryRun) {
  const TemporaryFolder folder;
  write_fake_run(folder.path() / "a", 1, 0, 90);
  write_fake_run(folder.path() / "deep/b", 100, 7, 40);
  const auto result = run_tool({"runs", folder.path().string(), "-o", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto rows = nlohmann::json::parse(result.out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].at("name"), "a");
  EXPECT_EQ(rows[1].at("name"), "deep/b");
  EXPECT_EQ(rows[1].at("status"), "finished");
  EXPECT_EQ(rows[1].at("model"), "mlp");
  EXPECT_EQ(rows[1].at("dataset"), "glyphs100");
  EXPECT_EQ(rows[1].at("T"), 100);
  EXPECT_EQ(rows[1].at("seed"), 7);
  EXPECT_EQ(rows[1].at("epochs"), "2/2");
  EXPECT_EQ(rows[1].at("test accuracy"), 0.5);
  EXPECT_EQ(rows[1].at("SR"), 40);
}

TEST(RunsVerb, ShowsTheOtherRunsBesideADamagedOne) {
  const TemporaryFolder folder;
  write_fake_run(folder.path() / "a", 1, 0, 90);
  write_fake_run(folder.path() / "b", 1, 1, 90);
  write_file_atomically(folder / "a/config.toml", "not toml at all");
  const auto result = run_tool({"runs", folder.path().string(), "-o", "csv"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.out.find("\na,unreadable"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("\nb,finished"), std::string::npos) << result.out;
  EXPECT_NE(result.err.find("a/config.toml"), std::string::npos) << result.err;
}

TEST(RunsVerb, SaysThatAFolderHoldsNoRuns) {
  const TemporaryFolder folder;
  const auto result = run_tool({"runs", folder.path()});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, folder.path().string() + ": holds no runs\n");
  const auto for_programs = run_tool({"runs", folder.path(), "-q", "-o", "json"});
  EXPECT_EQ(for_programs.out, "[]\n");
  EXPECT_EQ(for_programs.err, "");
}

TEST(RunsVerb, FitsItsTableIntoTheTerminal) {
  const TemporaryFolder folder;
  write_fake_run(folder.path() / "a-name-that-is-rather-long/and-goes-on/in-many-folders/run", 1, 0,
                 90);
  const auto result = run_tool({"runs", folder.path()});
  for (const auto& line : split(result.out, '\n')) EXPECT_LE(line.size(), 80U) << line;
  const auto wide = run_tool({"runs", folder.path()}, {"COLUMNS=200"});
  EXPECT_NE(wide.out.find("in-many-folders/run  finished"), std::string::npos) << wide.out;
}

TEST(RunsVerb, TellsRunsAtWorkFromThoseThatWereKilled) {
  const TemporaryFolder folder;
  for (const char* name : {"finished", "killed", "killed-later", "running"}) {
    write_fake_run(folder.path() / name, 1, 0, 90);
    if (name != std::string("finished"))
      write_file_atomically(folder.path() / name / "status", "running\n");
  }
  write_file_atomically(folder / "killed-later/lock", "17\n");  // as a killed process leaves it
  const auto lock = RunLock::take(folder / "running");
  const auto other = RunLock::take(folder / "finished");  // measured, for example
  const auto result = run_tool({"runs", folder.path().string(), "-o", "csv"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("\nfinished,finished,"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("\nkilled,killed,"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("\nkilled-later,killed,"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("\nrunning,running,"), std::string::npos) << result.out;
  EXPECT_EQ(read_file(folder / "killed/status"), "running\n");
}

TEST(RunsVerb, ShowsNamesOfFoldersWithoutControlCharacters) {
  const TemporaryFolder folder;
  write_fake_run(folder.path() / "a\x1b[31m\nb\xff", 1, 0, 90);
  write_fake_run(folder.path() / "damaged\x1b[31m\n", 1, 0, 90);
  write_file_atomically(folder / "damaged\x1b[31m\n/config.toml", "\x1b[2J = [");
  for (const char* format : {"text", "md", "csv", "json", "jsonl"}) {
    const auto result = run_tool({"runs", folder.path().string(), "-o", format});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out.find('\x1b'), std::string::npos) << format;
    EXPECT_EQ(result.err.find('\x1b'), std::string::npos) << format;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  const auto text = run_tool({"runs", folder.path().string()}).out;
  EXPECT_NE(text.find("\na?[31m b?  "), std::string::npos) << text;
}

TEST(RunsVerb, WarnsOfALinkToItselfAndGoesOn) {
  const TemporaryFolder folder;
  write_fake_run(folder.path() / "a", 1, 0, 90);
  std::filesystem::create_symlink("loop", folder / "loop");
  const auto result = run_tool({"runs", folder.path().string(), "-o", "csv"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.out.find("\na,finished"), std::string::npos) << result.out;
  EXPECT_EQ(result.err,
            "warning: " + (folder / "loop") + ": left out: Too many levels of symbolic links\n");
  const auto pruned = run_tool({"prune", folder.path().string(), "-o", "csv"});
  EXPECT_EQ(pruned.exit_code, 0) << pruned.err;
  const auto report = run_tool({"report", folder.path().string(), "--output", folder / "r.html"});
  EXPECT_EQ(report.exit_code, 0) << report.err;
}

// Root may look into every folder, so that another user looks.
TEST(RunsVerb, WarnsOfAFolderThatItMayNotLookIntoAndGoesOn) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const TemporaryFolder folder;
  namespace fs = std::filesystem;
  fs::permissions(folder.path(), fs::perms::others_all, fs::perm_options::add);
  write_fake_run(folder.path() / "a", 1, 0, 90);
  fs::create_directories(folder / "closed/inside");
  fs::permissions(folder / "closed", fs::perms::owner_all);
  const auto as_nobody = [](const std::vector<std::string>& tool) {
    std::vector<std::string> words = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
                                      "--clear-groups"};
    for (const auto& word : tool_words(tool)) words.push_back(word);
    return words;
  };
  if (StartedCommand(as_nobody({"--version"})).wait().exit_code != 0) {
    GTEST_SKIP() << "needs a build that another user may run";
  }
  for (const std::string verb : {"runs", "prune", "report"}) {
    auto words = as_nobody({verb, folder.path().string(), "-q"});
    if (verb == "prune") words.emplace_back("--dry-run");
    if (verb == "report") {
      words.emplace_back("--output");
      words.push_back(folder / "page.html");
    }
    const auto result = StartedCommand(words).wait();
    EXPECT_EQ(result.exit_code, 0) << verb << ": " << result.err;
    EXPECT_EQ(result.err,
              "warning: " + (folder / "closed") + ": cannot be looked into: Permission denied\n")
        << verb;
  }
}

TEST(RunsVerb, ShowsWhichSettingsWereChangedOnTheWay) {
  const TemporaryFolder folder;
  write_fake_run(folder.path() / "a", 1, 0, 90);
  write_fake_run(folder.path() / "b", 1, 0, 90);
  auto result = run_tool({"runs", folder.path().string(), "-o", "csv"});
  EXPECT_EQ(result.out.find("changed on resume"), std::string::npos) << result.out;
  RunFolder::open(folder / "b")
      .add_resumption({.step = 7, .changes = {{.key = "train.epochs", .from = 2, .to = 4}}});
  result = run_tool({"runs", folder.path().string(), "-o", "json"});
  const auto rows = nlohmann::json::parse(result.out);
  EXPECT_TRUE(rows.at(0).at("changed on resume").is_null()) << result.out;
  EXPECT_EQ(rows.at(1).at("changed on resume"), "train.epochs");
  result = run_tool({"compare", folder / "a", folder / "b"});
  EXPECT_NE(result.out.find("train.epochs from 2 to 4"), std::string::npos) << result.out;
  run_tool({"report", folder.path().string(), "--output", folder / "page.html"});
  EXPECT_NE(read_file(folder / "page.html").find("train.epochs was changed from 2 to 4"),
            std::string::npos);
}

}  // namespace kelvin::runs_test
