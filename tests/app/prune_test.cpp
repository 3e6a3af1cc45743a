#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "kelvin/core/files.h"
#include "kelvin/runs/run_folder.h"
#include "tests/support/command.h"
#include "tests/support/fake_run.h"
#include "tests/support/run_files.h"

namespace kelvin::prune_test {

namespace fs = std::filesystem;

// Runs a and deep/b, each with a checkpoint that nobody needs.
class PruneVerb : public testing::Test {
 protected:
  PruneVerb() {
    for (const char* name : {"a", "deep/b"}) {
      write_fake_run(root_ / name, 1, 0, 90);
      for (const char* step : {"step-5", "step-10"}) write_fake_checkpoint(root_ / name, step);
      link_fake_checkpoint(root_ / name, "last", "step-10");
    }
  }

  TemporaryFolder folder_;
  fs::path root_ = folder_.path() / "runs";
};

TEST_F(PruneVerb, SaysWhatItRemovedOfEachRun) {
  const auto lock = RunLock::take(root_ / "deep/b");
  const auto result = run_tool({"prune", root_.string(), "-o", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto rows = nlohmann::json::parse(result.out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0], (nlohmann::json{{"run", "a"}, {"removed", 1}, {"bytes", 3020}, {"note", {}}}));
  EXPECT_EQ(rows[1].at("run"), "deep/b");
  EXPECT_EQ(rows[1].at("removed"), 0);
  EXPECT_EQ(rows[1].at("note"), "left alone: a process is at work in it");
  EXPECT_FALSE(fs::exists(root_ / "a/checkpoints/step-5"));
  EXPECT_TRUE(fs::exists(root_ / "deep/b/checkpoints/step-5"));
}

TEST_F(PruneVerb, ListsWhatWouldGo) {
  const auto before = paths_below(root_);
  const auto result =
      run_tool({"prune", root_.string(), "--dry-run", "--training-state", "-o", "csv"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out,
            "run,would remove,bytes,note\n"
            "a,checkpoints/step-10/training.safetensors,2000,\n"
            "a,checkpoints/step-5,3020,\n"
            "deep/b,checkpoints/step-10/training.safetensors,2000,\n"
            "deep/b,checkpoints/step-5,3020,\n");
  EXPECT_EQ(paths_below(root_), before);
}

TEST_F(PruneVerb, PrunesTheOthersBesideOneThatItCannot) {
  write_file_atomically(root_ / "a/status", "what?\n");
  const auto result = run_tool({"prune", root_.string(), "-o", "csv"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "run,removed,bytes,note\na,,,failed\ndeep/b,1,3020,\n");
  EXPECT_NE(result.err.find("a/status: must hold running"), std::string::npos) << result.err;
  EXPECT_TRUE(fs::exists(root_ / "a/checkpoints/step-5"));
}

TEST_F(PruneVerb, DoesNotLeaveTheFolderByALink) {
  fs::create_directories(folder_.path() / "other");
  fs::create_directory_symlink(root_ / "a", folder_.path() / "other/linked");
  auto result = run_tool({"prune", folder_ / "other", "-o", "csv"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "run,removed,bytes,note\n");
  EXPECT_TRUE(fs::exists(root_ / "a/checkpoints/step-5"));
  result = run_tool({"prune", folder_ / "other/linked", "-o", "csv"});  // named by the user
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(fs::exists(root_ / "a/checkpoints/step-5"));
}

TEST_F(PruneVerb, RefusesAFolderThatIsNotThere) {
  const auto result = run_tool({"prune", folder_ / "no"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "kelvin prune: " + (folder_ / "no") + ": no such folder\n");
}

}  // namespace kelvin::prune_test
