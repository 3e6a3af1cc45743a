#include <gtest/gtest.h>

#include <string>

#include "kelvin/runs/run_folder.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/other_process.h"

namespace kelvin::run_lock_test {

namespace fs = std::filesystem;

TEST(RunLock, IsTheFileLockOfTheRun) {
  const TemporaryFolder run;
  EXPECT_FALSE(is_locked(run.path()));
  auto lock = RunLock::try_take(run.path());
  ASSERT_TRUE(lock.has_value());
  EXPECT_TRUE(fs::exists(run / "lock"));
  EXPECT_TRUE(is_locked(run.path()));
  EXPECT_FALSE(RunLock::try_take(run.path()).has_value());
  lock.reset();
  EXPECT_FALSE(is_locked(run.path()));
  EXPECT_TRUE(fs::is_empty(run.path()));
}

TEST(RunLock, NamesTheProcessThatIsAtWork) {
  const TemporaryFolder run;
  OtherProcess other([&](const auto& wait) {
    const auto lock = RunLock::take(run.path());
    wait();
  });
  ASSERT_TRUE(other.is_waiting());
  EXPECT_EQ(error_of([&] { RunLock::take(run.path()); }),
            run.path().string() + ": another process (" + std::to_string(other.process()) +
                ") is at work in it");
  EXPECT_TRUE(is_locked(run.path()));
  other.kill();
  EXPECT_FALSE(is_locked(run.path()));
  const auto lock = RunLock::take(run.path());
  EXPECT_TRUE(is_locked(run.path()));
}

TEST(RunLock, NeedsTheFolder) {
  const TemporaryFolder folder;
  EXPECT_FALSE(is_locked(folder / "no"));
  EXPECT_EQ(error_of([&] { RunLock::take(folder / "no"); }),
            folder / "no/lock" + ": cannot be made: No such file or directory");
}

}  // namespace kelvin::run_lock_test
