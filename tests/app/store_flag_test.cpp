#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/damaged_runs.h"

namespace kelvin::store_flag_test {

namespace fs = std::filesystem;

// A run that nobody may write to.
class ReadOnlyRun : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    kept_folder = new TemporaryFolder;
    fs::permissions(kept_folder->path(), fs::perms::others_read | fs::perms::others_exec,
                    fs::perm_options::add);
    const auto trained =
        run_tool({"train", "-q", "--model", "mlp", "--dataset", "glyphs10", "--ood", "textures10",
                  "--epochs", "1", "--output", run(), "--measures", "accuracy", "model.width=8",
                  "model.depth=2", "data.train_samples=128", "data.test_samples=64"});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
  }
  static void TearDownTestSuite() { delete kept_folder; }

  static std::string run() { return *kept_folder / "run"; }

  // As somebody who has no rights in the folder, which root always has.
  static CommandResult with_no_rights(const std::vector<std::string>& arguments) {
    std::vector<std::string> words = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
                                      "--clear-groups"};
    for (const auto& word : tool_words(arguments)) words.push_back(word);
    return StartedCommand(words).wait();
  }

  static inline TemporaryFolder* kept_folder = nullptr;
};

const std::vector<std::vector<std::string>> kVerbs = {
    {"measure", "--measures", "accuracy"}, {"ood", "--detectors", "msp"}, {"probe"}, {"calibrate"}};

TEST_F(ReadOnlyRun, IsRefusedAtOnceAndLookedAtWithoutStoring) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const auto before = contents_of(run());
  for (auto words : kVerbs) {
    words.insert(words.end(), {run(), "-q"});
    const auto refused = with_no_rights(words);
    EXPECT_EQ(refused.exit_code, 2) << words[0];
    EXPECT_EQ(refused.out, "");
    EXPECT_EQ(refused.err, "kelvin " + words[0] + ": " + run() +
                               "/lock: cannot be made: Permission denied; --no-store leaves the "
                               "run as it is\n");
    words.emplace_back("--no-store");
    const auto result = with_no_rights(words);
    EXPECT_EQ(result.exit_code, 0) << words[0] << ": " << result.err;
    EXPECT_NE(result.out, "") << words[0];
  }
  EXPECT_TRUE(contents_of(run()) == before);
}

// The disk is full, as it were: the part of readings.jsonl cannot be written.
TEST_F(ReadOnlyRun, IsPrintedEvenIfItCannotBeStored) {
  fs::create_directories(run() + "/readings.jsonl.part/x");
  for (auto words : kVerbs) {
    words.insert(words.end(), {run(), "-q"});
    const auto result = run_tool(words);
    EXPECT_EQ(result.exit_code, 2) << words[0];
    EXPECT_NE(result.out, "") << words[0];
    EXPECT_NE(result.err.find("readings.jsonl: cannot write"), std::string::npos) << result.err;
  }
  fs::remove_all(run() + "/readings.jsonl.part");
}

}  // namespace kelvin::store_flag_test
