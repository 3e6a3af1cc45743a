#include "kelvin/sources/partial_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "kelvin/sources/new_file.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin {
namespace {

TEST(PartialFile, GoesOnWhereAnEarlierOneEnded) {
  const TemporaryFolder folder;
  PartialFile(folder / "x").append("abc");
  PartialFile file(folder / "x");
  EXPECT_EQ(file.bytes(), 3);
  file.append("de");
  EXPECT_EQ(file.bytes(), 5);
  EXPECT_EQ(whole_file(folder / "x"), "abcde");
}

TEST(PartialFile, BeginsAnewAfterItWasCleared) {
  const TemporaryFolder folder;
  PartialFile file(folder / "x");
  file.append("abc");
  file.clear();
  EXPECT_EQ(file.bytes(), 0);
  file.append("d");
  EXPECT_EQ(whole_file(folder / "x"), "d");
}

TEST(PartialFile, FollowsNoLinkAndTakesNoPipe) {
  const TemporaryFolder folder;
  std::ofstream(folder / "there") << "old";
  std::filesystem::create_symlink(folder / "there", folder / "link");
  EXPECT_THROW(PartialFile(folder / "link"), DiskError);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(PartialFile(folder / "pipe"), DiskError);
  EXPECT_EQ(error_of([&] { PartialFile(folder.path()); }),
            folder.path().string() + ": cannot write: Is a directory");
}

}  // namespace
}  // namespace kelvin
