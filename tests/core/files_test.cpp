#include "kelvin/core/files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

// More than any buffer on the way, with every byte in it.
std::string large_content() {
  std::string content;
  for (int i = 0; i < 1'000'003; ++i) content += static_cast<char>(i * 7 + i / 256);
  return content;
}

TEST(ReadFile, GivesBackEveryByteThatWasWritten) {
  const TemporaryFolder folder;
  const auto content = large_content();
  for (const std::string& text : {std::string(), std::string("\0\n\r\xff", 4), content}) {
    write_file_atomically(folder / "x", text);
    EXPECT_TRUE(read_file(folder / "x") == text);
  }
}

TEST(ReadFile, NamesAFileThatIsNotThere) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { read_file(folder / "x"); }),
            (folder / "x") + ": cannot read: No such file or directory");
}

TEST(ReadFile, RefusesAFolder) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { read_file(folder.path()); }),
            folder.path().string() + ": is a folder, must be a file");
}

TEST(ReadFile, RefusesANameNoFileCanHave) {
  const TemporaryFolder folder;
  const auto path = folder / std::string(300, 'a');
  EXPECT_EQ(error_of([&] { read_file(path); }), path + ": cannot read: File name too long");
}

// The first page of a process is never mapped, so that reading it fails after opening worked.
TEST(ReadFile, DoesNotTakeAFailedReadForTheEnd) {
  EXPECT_EQ(error_of([] { read_file("/proc/self/mem"); }),
            "/proc/self/mem: cannot read to its end");
}

TEST(WriteFileAtomically, ReplacesTheOldContent) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "x", "a long first content");
  write_file_atomically(folder / "x", "second");
  EXPECT_EQ(read_file(folder / "x"), "second");
}

TEST(WriteFileAtomically, LeavesNoTemporaryFile) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "x", "content");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(WriteFileAtomically, WritesOverWhatACrashLeft) {
  const TemporaryFolder folder;
  append_line(folder / "x.part", "half of the content of an earlier attempt");
  write_file_atomically(folder / "x", "new");
  EXPECT_EQ(read_file(folder / "x"), "new");
  EXPECT_FALSE(fs::exists(folder / "x.part"));
}

TEST(WriteFileAtomically, KeepsTheOldContentIfTheNewCannotBeWritten) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "x", "old");
  fs::create_directory(folder / "x.part");
  EXPECT_EQ(error_of([&] { write_file_atomically(folder / "x", "new"); }),
            (folder / "x") + ": cannot write: Is a directory");
  EXPECT_EQ(read_file(folder / "x"), "old");
}

TEST(WriteFileAtomically, DoesNotReplaceAFolderAndLeavesNoTemporaryFile) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "x/inside");
  EXPECT_EQ(error_of([&] { write_file_atomically(folder / "x", "new"); }),
            (folder / "x") + ": cannot write: Is a directory");
  EXPECT_TRUE(fs::exists(folder / "x/inside"));
  EXPECT_FALSE(fs::exists(folder / "x.part"));
}

TEST(WriteFileAtomically, RefusesAFolderThatIsNotThere) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { write_file_atomically(folder / "no/x", "new"); }),
            (folder / "no/x") + ": cannot write: No such file or directory");
}

// The disk that is always full.
TEST(WriteFileAtomically, KeepsTheOldContentIfTheDiskIsFull) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "x", "old");
  fs::create_symlink("/dev/full", folder / "x.part");
  EXPECT_EQ(error_of([&] { write_file_atomically(folder / "x", "new"); }),
            (folder / "x") + ": cannot write: No space left on device");
  EXPECT_EQ(read_file(folder / "x"), "old");
  EXPECT_TRUE(fs::exists("/dev/full"));
}

TEST(AppendLine, AddsLinesAtTheEnd) {
  const TemporaryFolder folder;
  append_line(folder / "x", "first");
  append_line(folder / "x", "");
  append_line(folder / "x", "third");
  EXPECT_EQ(read_file(folder / "x"), "first\n\nthird\n");
}

TEST(AppendLine, RefusesAFolder) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { append_line(folder.path(), "x"); }),
            folder.path().string() + ": cannot write: Is a directory");
}

TEST(AppendLine, SaysThatTheDiskIsFull) {
  EXPECT_EQ(error_of([] { append_line("/dev/full", "x"); }),
            "/dev/full: cannot write: No space left on device");
}

}  // namespace
}  // namespace kelvin
