#include "kelvin/sources/data_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "kelvin/sources/new_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin {
namespace {

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

}  // namespace
}  // namespace kelvin
