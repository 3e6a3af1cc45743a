#include "kelvin/formats/stored_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin {
namespace {

TEST(StoredFile, IsReadIfItIsNoLargerThanAllowed) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "x", "12345");
  EXPECT_EQ(read_stored_file(folder / "x", 5), "12345");
  EXPECT_EQ(error_of([&] { read_stored_file(folder / "x", 4); }),
            (folder / "x") + ": must have at most 4 bytes, has 5");
}

TEST(StoredFile, IsNotReadIfAHoleMakesItHuge) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "x", "12345");
  std::filesystem::resize_file(folder / "x", uintmax_t{1} << 40);
  EXPECT_NE(error_of([&] { read_stored_file(folder / "x", 1 << 20); }), "");
}

TEST(StoredFile, IsNeitherAFolderNorAPipeNorADevice) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { read_stored_file(folder.path(), 100); }),
            folder.path().string() + ": is a folder, must be a file");
  EXPECT_EQ(error_of([&] { read_stored_file(folder / "pipe", 100); }),
            (folder / "pipe") + ": must be a file, is a device or a pipe");
  EXPECT_EQ(error_of([&] { read_stored_file("/dev/zero", 100); }),
            "/dev/zero: must be a file, is a device or a pipe");
  EXPECT_EQ(error_of([&] { read_stored_file(folder / "missing", 100); }),
            (folder / "missing") + ": cannot read: No such file or directory");
}

}  // namespace
}  // namespace kelvin
