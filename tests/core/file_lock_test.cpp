#include "kelvin/core/file_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/other_process.h"

namespace kelvin::file_lock_test {

namespace fs = std::filesystem;

TEST(FileLock, IsHeldByOneAtATime) {
  const TemporaryFolder folder;
  auto lock = FileLock::try_take(folder / "x");
  ASSERT_TRUE(lock.has_value());
  EXPECT_FALSE(FileLock::try_take(folder / "x").has_value());
  EXPECT_TRUE(FileLock::try_take(folder / "y").has_value());
  lock.reset();
  EXPECT_TRUE(FileLock::try_take(folder / "x").has_value());
}

TEST(FileLock, SaysWhoHoldsIt) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "x", "1234567890 is an older and longer text\n");
  const auto lock = FileLock::try_take(folder / "x");
  EXPECT_EQ(holder_of_lock(folder / "x"), std::to_string(::getpid()));
  EXPECT_EQ(holder_of_lock(folder / "y"), "");
}

TEST(FileLock, LeavesNothingBehind) {
  const TemporaryFolder folder;
  { const auto lock = FileLock::try_take(folder / "x"); }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(FileLock, MovesWithItsObject) {
  const TemporaryFolder folder;
  auto first = FileLock::try_take(folder / "x");
  auto second = FileLock::try_take(folder / "y");
  *first = std::move(*second);
  second.reset();
  EXPECT_FALSE(is_file_locked(folder / "x"));
  EXPECT_TRUE(is_file_locked(folder / "y"));
  first.reset();
  EXPECT_FALSE(is_file_locked(folder / "y"));
}

TEST(FileLock, IsHeldBetweenProcessesAndFreeWhenItsHolderIsKilled) {
  const TemporaryFolder folder;
  OtherProcess other([&](const auto& wait) {
    const auto lock = FileLock::try_take(folder / "x");
    if (lock) wait();
  });
  ASSERT_TRUE(other.is_waiting());
  EXPECT_TRUE(is_file_locked(folder / "x"));
  EXPECT_FALSE(FileLock::try_take(folder / "x").has_value());
  EXPECT_EQ(holder_of_lock(folder / "x"), std::to_string(other.process()));
  other.kill();
  EXPECT_TRUE(fs::exists(folder / "x"));
  EXPECT_FALSE(is_file_locked(folder / "x"));
  EXPECT_TRUE(FileLock::try_take(folder / "x").has_value());
}

TEST(FileLock, IsAskedWithoutBeingTaken) {
  const TemporaryFolder folder;
  EXPECT_FALSE(is_file_locked(folder / "x"));
  EXPECT_FALSE(fs::exists(folder / "x"));
  EXPECT_FALSE(is_file_locked(folder / "no/x"));
  append_line(folder / "x", "");
  std::atomic<bool> is_over = false;
  std::thread asking([&] {
    while (!is_over) is_file_locked(folder / "x");
  });
  int refusals = 0;
  for (int i = 0; i < 2000; ++i) refusals += FileLock::try_take(folder / "x") ? 0 : 1;
  is_over = true;
  asking.join();
  EXPECT_EQ(refusals, 0);
}

TEST(FileLock, NeverHasTwoHoldersInARace) {
  const TemporaryFolder folder;
  std::atomic<int> holders = 0;
  std::atomic<int> collisions = 0;
  std::atomic<int> successes = 0;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        const auto lock = FileLock::try_take(folder / "x");
        if (!lock) continue;
        if (++holders > 1) ++collisions;
        ++successes;
        --holders;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GT(successes, 0);
  EXPECT_EQ(collisions, 0);
}

TEST(FileLock, MakesItsFolderIfAsked) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { FileLock::try_take(folder / "a/b/x"); }),
            folder / "a/b/x" + ": cannot be made: No such file or directory");
  EXPECT_TRUE(FileLock::try_take(folder / "a/b/x", FileLock::Folder::is_made).has_value());
  append_line(folder / "file", "");
  EXPECT_EQ(error_of([&] { FileLock::try_take(folder / "file/x", FileLock::Folder::is_made); }),
            folder / "file" + ": cannot be made: Not a directory");
}

TEST(FileLock, DoesNotWriteThroughALink) {
  const TemporaryFolder folder;
  append_line(folder / "precious", "content");
  fs::create_symlink("precious", folder / "x");
  EXPECT_EQ(error_of([&] { FileLock::try_take(folder / "x"); }),
            folder / "x" + ": cannot be made: Too many levels of symbolic links");
  EXPECT_EQ(error_of([&] { is_file_locked(folder / "x"); }),
            folder / "x" + ": cannot read: Too many levels of symbolic links");
  EXPECT_EQ(read_file(folder / "precious"), "content\n");
}

TEST(FileLock, DoesNotRemoveWhatTookItsPlace) {
  const TemporaryFolder folder;
  {
    const auto lock = FileLock::try_take(folder / "x");
    write_file_atomically(folder / "x", "other");
  }
  EXPECT_EQ(read_file(folder / "x"), "other");
}

}  // namespace kelvin::file_lock_test
