#include "kelvin/sources/staging_folder.h"

#include <gtest/gtest.h>

#include <fstream>

#include "kelvin/sources/new_file.h"
#include "tests/support/command.h"

namespace kelvin {
namespace {

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

}  // namespace
}  // namespace kelvin
