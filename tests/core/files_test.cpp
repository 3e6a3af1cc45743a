#include "kelvin/core/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin::files_test {

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

TEST(ReadFile, RefusesAPipeAtWhichItWouldWait) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { read_file(folder / "pipe"); }),
            (folder / "pipe") + ": must be a file, is a device or a pipe");
  EXPECT_EQ(error_of([] { read_file("/dev/null"); }),
            "/dev/null: must be a file, is a device or a pipe");
  EXPECT_EQ(read_file_or_pipe("/dev/null"), "");
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

TEST(AppendBytes, AddsThemAsTheyAre) {
  const TemporaryFolder folder;
  const std::string bytes("\0\n\xff", 3);
  append_bytes(folder / "x", bytes);
  append_bytes(folder / "x", "");
  append_bytes(folder / "x", bytes);
  EXPECT_EQ(read_file(folder / "x"), bytes + bytes);
}

TEST(FileSizeOrZero, CountsBytes) {
  const TemporaryFolder folder;
  EXPECT_EQ(file_size_or_zero(folder / "x"), 0);
  append_line(folder / "x", "four");
  EXPECT_EQ(file_size_or_zero(folder / "x"), 5);
}

TEST(FileSizeOrZero, TakesNothingElseForAFileThatIsMissing) {
  const TemporaryFolder folder;
  append_line(folder / "x", "");
  EXPECT_EQ(error_of([&] { file_size_or_zero(folder.path()); }),
            folder.path().string() + ": is a folder, must be a file");
  EXPECT_EQ(error_of([&] { file_size_or_zero(folder / "x/y"); }),
            folder / "x/y" + ": cannot read: Not a directory");
}

TEST(TruncateFile, KeepsTheBeginning) {
  const TemporaryFolder folder;
  append_line(folder / "x", "first");
  append_line(folder / "x", "second");
  truncate_file(folder / "x", 6);
  EXPECT_EQ(read_file(folder / "x"), "first\n");
  append_line(folder / "x", "third");
  EXPECT_EQ(read_file(folder / "x"), "first\nthird\n");
  truncate_file(folder / "x", 12);
  EXPECT_EQ(read_file(folder / "x"), "first\nthird\n");
  truncate_file(folder / "x", 0);
  EXPECT_EQ(read_file(folder / "x"), "");
}

// A longer file would be filled with zeros, which nobody wrote.
TEST(TruncateFile, RefusesAFileOfWhichSomethingWasLost) {
  const TemporaryFolder folder;
  append_line(folder / "x", "first");
  EXPECT_EQ(error_of([&] { truncate_file(folder / "x", 7); }),
            folder / "x" + ": must have at least 7 bytes, has 6");
  EXPECT_EQ(read_file(folder / "x"), "first\n");
  EXPECT_EQ(error_of([&] { truncate_file(folder / "y", 1); }),
            folder / "y" + ": must have at least 1 bytes, has 0");
}

TEST(TruncateFile, MakesNoFileOfNothing) {
  const TemporaryFolder folder;
  truncate_file(folder / "x", 0);
  EXPECT_FALSE(fs::exists(folder / "x"));
}

TEST(TruncateFile, RefusesWhatCannotBeCut) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { truncate_file(folder / "x", -1); }),
            folder / "x" + ": cannot be cut to -1 bytes, must be 0 or more");
  EXPECT_EQ(error_of([&] { truncate_file(folder.path(), 0); }),
            folder.path().string() + ": is a folder, must be a file");
}

TEST(SyncFile, LeavesContentAlone) {
  const TemporaryFolder folder;
  append_line(folder / "x", "content");
  sync_file(folder / "x");
  sync_file(folder.path());
  EXPECT_EQ(read_file(folder / "x"), "content\n");
}

TEST(SyncFile, AllowsWhatHasNothingToSync) { sync_file("/dev/null"); }

TEST(SyncFile, NamesAFileThatIsNotThere) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { sync_file(folder / "x"); }),
            folder / "x" + ": cannot read: No such file or directory");
}

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

}  // namespace kelvin::files_test
