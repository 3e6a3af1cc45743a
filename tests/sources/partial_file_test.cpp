#include "kelvin/sources/partial_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin::partial_file_test {

TEST(NewFile, HoldsWhatWasWritten) {
  const TemporaryFolder folder;
  NewFile file(folder / "x", 10);
  file.write("12345");
  file.write("");
  file.write("67890");
  EXPECT_EQ(file.bytes(), 10);
  file.close();
  EXPECT_EQ(whole_file(folder / "x"), "1234567890");
}

TEST(NewFile, RefusesMoreThanItsLimit) {
  const TemporaryFolder folder;
  NewFile file(folder / "x", 3);
  file.write("12");
  EXPECT_EQ(error_of([&] { file.write("34"); }),
            folder / "x" + ": must have at most 3 bytes, more are there");
}

TEST(NewFile, WritesThroughNothingThatIsThere) {
  const TemporaryFolder folder;
  std::ofstream(folder / "there") << "old";
  std::filesystem::create_symlink(folder / "there", folder / "link");
  std::filesystem::create_symlink(folder / "absent", folder / "dangling");
  for (const char* name : {"there", "link", "dangling"}) {
    EXPECT_EQ(error_of([&] { NewFile(folder / name, 3); }),
              folder / name + ": cannot be made: File exists");
  }
  EXPECT_EQ(whole_file(folder / "there"), "old");
  EXPECT_FALSE(std::filesystem::exists(folder / "absent"));
}

TEST(NewFile, BlamesTheDiskForWhatTheDiskRefuses) {
  const TemporaryFolder folder;
  EXPECT_THROW(NewFile(folder / "no/x", 3), DiskError);
  EXPECT_THROW(sync_folder(folder / "no"), DiskError);
}

TEST(MakeFolders, MakesThoseAboveToo) {
  const TemporaryFolder folder;
  make_folders(folder / "a/b");
  make_folders(folder / "a/b");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b"));
  sync_folder(folder / "a/b");
}

TEST(MakeFolders, RefusesAFileOnTheWay) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a") << "";
  EXPECT_EQ(error_of([&] { make_folders(folder / "a"); }),
            folder / "a" + ": cannot be made: Not a directory");
  EXPECT_EQ(error_of([&] { make_folders(folder / "a/b"); }),
            folder / "a/b" + ": cannot be made: Not a directory");
}

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

}  // namespace kelvin::partial_file_test
