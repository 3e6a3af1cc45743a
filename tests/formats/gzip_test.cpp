#include "kelvin/formats/gzip.h"

#include <gtest/gtest.h>

#include <string>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"
#include "tests/support/python.h"

namespace kelvin::gzip_test {

// What a Python expression of bytes gives; `text` is at hand as `b`.
std::string python_bytes(const std::string& expression, const std::string& text) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "in", text);
  python_output(
      "import sys, gzip, zlib\nb = open(sys.argv[1], 'rb').read()\n"
      "open(sys.argv[2], 'wb').write(" +
          expression + ")",
      {folder / "in", folder / "out"});
  return read_file(folder / "out");
}

std::string long_text() {
  std::string text;
  for (int64_t i = 0; i < 60000; ++i) text += std::to_string(i * i) + " ";
  return text;
}

TEST(Gunzipped, GivesWhatPythonPacked) {
  const auto text = long_text();
  EXPECT_EQ(gunzipped(python_bytes("gzip.compress(b)", text), "a.gz", 1 << 20), text);
  EXPECT_EQ(gunzipped(python_bytes("gzip.compress(b)", ""), "a.gz", 0), "");
}

TEST(Gunzipped, JoinsSeveralMembers) {
  const auto packed =
      python_bytes("gzip.compress(b) + gzip.compress(b'') + gzip.compress(b)", "ab");
  EXPECT_EQ(gunzipped(packed, "a.gz", 4), "abab");
}

TEST(Gunzipped, HoldsTheLimitToTheByte) {
  const auto packed = python_bytes("gzip.compress(b)", "abcd");
  EXPECT_EQ(gunzipped(packed, "a.gz", 4), "abcd");
  EXPECT_EQ(error_of([&] { gunzipped(packed, "a.gz", 3); }),
            "a.gz: must hold at most 3 bytes, holds more");
}

TEST(Gunzipped, StopsABombAtTheLimit) {
  const auto bomb = python_bytes("gzip.compress(bytes(1 << 26))", "");
  ASSERT_LT(bomb.size(), 100000U);
  EXPECT_EQ(error_of([&] { gunzipped(bomb, "a.gz", 1000); }),
            "a.gz: must hold at most 1000 bytes, holds more");
}

TEST(Gunzipped, RefusesAFileCutOffAtAnyByte) {
  const auto packed = python_bytes("gzip.compress(b)", "abcdefgh");
  for (size_t length = 0; length < packed.size(); ++length) {
    EXPECT_THROW(gunzipped(packed.substr(0, length), "a.gz", 100), Error) << length;
  }
}

TEST(Gunzipped, RefusesDamageAndSaysWhere) {
  auto packed = python_bytes("gzip.compress(b)", "abcdefgh");
  packed.at(packed.size() - 6) ^= 1;  // the checksum
  EXPECT_EQ(error_of([&] { gunzipped(packed, "a.gz", 100); }),
            "a.gz: byte " + std::to_string(packed.size() - 4) +
                ": its compressed data is damaged or cut off");
  EXPECT_EQ(error_of([] { gunzipped("hello", "a.gz", 100); }), "a.gz: is not a gzip file");
  EXPECT_THROW(gunzipped(python_bytes("gzip.compress(b) + b'x'", "ab"), "a.gz", 100), Error);
}

TEST(Inflated, GivesWhatPythonPacked) {
  EXPECT_EQ(inflated(python_bytes("zlib.compress(b)", long_text()), "a", 1 << 20), long_text());
}

TEST(Inflated, RefusesBytesAfterTheEnd) {
  EXPECT_EQ(error_of([] { inflated(python_bytes("zlib.compress(b) + b'x'", "ab"), "a", 100); }),
            "a: bytes follow the end of its compressed data");
  EXPECT_THROW(inflated("", "a", 100), Error);
}

TEST(ReadFileOrGzip, TellsThemByTheirFirstBytes) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "plain.gz", "plain");
  write_file_atomically(folder / "packed", python_bytes("gzip.compress(b)", "packed"));
  EXPECT_EQ(read_file_or_gzip(folder / "plain.gz", 10), "plain");
  EXPECT_EQ(read_file_or_gzip(folder / "packed", 10), "packed");
}

TEST(ReadFileOrGzip, RefusesWhatIsTooLargeBeforeItReadsIt) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", "abcdef");
  EXPECT_EQ(error_of([&] { read_file_or_gzip(folder / "a", 5); }),
            folder / "a" + ": must hold at most 5 bytes, has 6");
  std::filesystem::resize_file(folder / "a", 1ULL << 40);  // takes no room on the disk
  EXPECT_EQ(error_of([&] { read_file_or_gzip(folder / "a", 5); }),
            folder / "a" + ": must hold at most 5 bytes, has 1099511627776");
}

TEST(ReadFileOrGzip, NamesWhatItCannotRead) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { read_file_or_gzip(folder / "none", 5); }),
            folder / "none" + ": cannot read: No such file or directory");
  EXPECT_EQ(error_of([&] { read_file_or_gzip(folder.path(), 5); }),
            folder.path().string() + ": is a folder, must be a file");
  EXPECT_EQ(error_of([&] { read_file_or_gzip("/dev/zero", 5); }), "/dev/zero: must be a file");
}

}  // namespace kelvin::gzip_test
