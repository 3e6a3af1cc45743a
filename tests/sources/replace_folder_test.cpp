#include "kelvin/sources/replace_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "kelvin/sources/new_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

// Both ways must do the same.
class ReplaceFolder
    : public testing::TestWithParam<void (*)(const fs::path&, const fs::path&, const fs::path&)> {
 protected:
  void make(const std::string& name) const {
    fs::create_directory(folder_ / name);
    std::ofstream(folder_ / name + "/file") << name;
  }

  void replace() const { GetParam()(folder_ / "fresh", folder_ / "target", folder_ / "old"); }

  TemporaryFolder folder_;
};

TEST_P(ReplaceFolder, PutsTheFreshOneWhereNoneWas) {
  make("fresh");
  replace();
  EXPECT_EQ(whole_file(folder_ / "target/file"), "fresh");
  EXPECT_FALSE(fs::exists(folder_ / "fresh"));
  EXPECT_FALSE(fs::exists(folder_ / "old"));
}

TEST_P(ReplaceFolder, MovesTheOldOneAside) {
  make("fresh");
  make("target");
  replace();
  EXPECT_EQ(whole_file(folder_ / "target/file"), "fresh");
  EXPECT_EQ(whole_file(folder_ / "old/file"), "target");
  EXPECT_FALSE(fs::exists(folder_ / "fresh"));
}

TEST_P(ReplaceFolder, LeavesTheOldOneIfThereIsNoFreshOne) {
  make("target");
  EXPECT_EQ(error_of([&] { replace(); }),
            folder_ / "target" + ": cannot be replaced: No such file or directory");
  EXPECT_EQ(whole_file(folder_ / "target/file"), "target");
  EXPECT_FALSE(fs::exists(folder_ / "old"));
}

TEST_P(ReplaceFolder, BlamesTheDiskForWhatTheDiskRefuses) {
  make("fresh");
  EXPECT_THROW(GetParam()(folder_ / "fresh", folder_ / "no/target", folder_ / "old"), DiskError);
}

INSTANTIATE_TEST_SUITE_P(BothWays, ReplaceFolder,
                         testing::Values(replace_folder, replace_folder_in_two_steps));

}  // namespace
}  // namespace kelvin
