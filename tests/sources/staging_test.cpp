#include "kelvin/sources/staging.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "kelvin/sources/partial_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin::staging_test {

TEST(DataLock, IsHeldByOneAtATime) {
  const TemporaryFolder folder;
  std::optional<DataLock> lock(std::in_place, folder / "new", "x");
  EXPECT_EQ(error_of([&] { DataLock(folder / "new", "x"); }),
            folder / "new/x.lock" + ": must be free, another process holds it");
  const DataLock other(folder / "new", "y");
  lock.reset();
  const DataLock again(folder / "new", "x");
}

TEST(DataLock, LeavesNothingBehind) {
  const TemporaryFolder folder;
  { const DataLock lock(folder.path(), "x"); }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(DataLock, IsFreeIfItsHolderDied) {
  const TemporaryFolder folder;
  std::ofstream(folder / "x.lock") << "";  // the file without the lock
  const DataLock lock(folder.path(), "x");
}

TEST(DataLock, NeverHasTwoHoldersInARace) {
  const TemporaryFolder folder;
  std::atomic<int> holders = 0;
  std::atomic<int> most = 0;
  std::atomic<int> successes = 0;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        try {
          const DataLock lock(folder.path(), "x");
          most = std::max(most.load(), ++holders);
          ++successes;
          --holders;
        } catch (const Error&) {
          continue;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GT(successes, 0);
  EXPECT_EQ(most, 1);
}

TEST(DataLock, BlamesTheDiskForWhatTheDiskRefuses) {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "";
  EXPECT_THROW(DataLock(folder / "file", "x"), DiskError);
  std::filesystem::create_directory(folder / "x.lock");
  EXPECT_EQ(error_of([&] { DataLock(folder.path(), "x"); }),
            folder / "x.lock" + ": cannot be made: Is a directory");
}

namespace fs = std::filesystem;

TEST(StagingFolder, GoesWithAllItHolds) {
  const TemporaryFolder folder;
  fs::path path;
  {
    const StagingFolder staging(folder.path(), "x");
    path = staging.path();
    fs::create_directories(path / "a/b");
    std::ofstream(path / "a/b/c") << "d";
    EXPECT_TRUE(fs::exists(path / "a/b/c"));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(StagingFolder, RemovesWhatTheDeadLeftUnderItsNameOnly) {
  const TemporaryFolder folder;
  for (const char* name : {"unpack-x-abcdef", "unpack-x-y-abcdef", "unpack-xy-abcdef", "x"}) {
    fs::create_directory(folder / name);
  }
  const StagingFolder staging(folder.path(), "x");
  EXPECT_FALSE(fs::exists(folder / "unpack-x-abcdef"));
  EXPECT_TRUE(fs::exists(folder / "unpack-x-y-abcdef"));
  EXPECT_TRUE(fs::exists(folder / "unpack-xy-abcdef"));
  EXPECT_TRUE(fs::exists(folder / "x"));
}

TEST(StagingFolder, BlamesTheDiskIfItCannotBeMade) {
  EXPECT_THROW(StagingFolder("/nowhere", "x"), DiskError);
}

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

}  // namespace kelvin::staging_test
