#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kelvin/runs/run_folder.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/fake_run.h"

namespace kelvin::find_runs_test {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

TEST(FindRuns, GivesARunItself) {
  const TemporaryFolder folder;
  new_run(folder.path() / "run");
  EXPECT_EQ(find_runs(folder.path() / "run"), (std::vector<fs::path>{folder.path() / "run"}));
}

TEST(FindRuns, GivesEveryRunBelowByName) {
  const TemporaryFolder folder;
  new_run(folder.path() / "b");
  new_run(folder.path() / "a/deep");
  fs::create_directories(folder / "c/empty");
  EXPECT_EQ(find_runs(folder.path()),
            (std::vector<fs::path>{folder.path() / "a/deep", folder.path() / "b"}));
}

TEST(FindRuns, RefusesAFolderThatIsNotThere) {
  EXPECT_EQ(error_of([] { find_runs("/no/such"); }), "/no/such: no such folder");
}

TEST(FindRuns, GoesOnBesideALinkToItself) {
  const TemporaryFolder folder;
  new_run(folder.path() / "run");
  fs::create_symlink("loop", folder / "loop");
  fs::create_directories(folder / "deep");
  fs::create_symlink("../deep", folder / "deep/up");
  fs::create_symlink("nowhere", folder / "dangling");
  std::vector<std::string> warnings;
  const auto runs =
      find_runs(folder.path(), [&](const std::string& text) { warnings.push_back(text); });
  EXPECT_EQ(runs, (std::vector<fs::path>{folder.path() / "run"}));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0], (folder / "loop") + ": left out: Too many levels of symbolic links");
}

TEST(FindRuns, WarnsOfAFewAndCountsTheOthers) {
  const TemporaryFolder folder;
  new_run(folder.path() / "run");
  std::vector<std::string> warnings;
  for (int loops = 1; loops <= 40; ++loops) {
    const auto name = "loop" + std::to_string(loops);
    fs::create_symlink(name, folder / name);
    warnings.clear();
    const auto runs =
        find_runs(folder.path(), [&](const std::string& text) { warnings.push_back(text); });
    EXPECT_EQ(runs, (std::vector<fs::path>{folder.path() / "run"}));
    EXPECT_EQ(warnings.size(), static_cast<size_t>(std::min(loops, 6)));
  }
  EXPECT_EQ(warnings.back(), folder.path().string() + ": 35 more below it left out likewise");
}

}  // namespace kelvin::find_runs_test
