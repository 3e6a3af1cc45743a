#include "kelvin/formats/byte_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin::byte_reader_test {

// A file longer than a window of small reads, whose bytes tell their place.
std::string long_content() {
  std::string content;
  for (uint32_t i = 0; i < 50'000; ++i) {
    content.append(reinterpret_cast<const char*>(&i), sizeof(i));
  }
  return content;
}

TEST(ByteReader, GivesTheSameOfAFileAndOfItsBytes) {
  const TemporaryFolder folder;
  const auto content = long_content();
  write_file_atomically(folder / "a", content);
  const ByteReader of_file{std::filesystem::path(folder / "a")};
  const ByteReader of_bytes(content, "a");
  EXPECT_EQ(of_file.size(), of_bytes.size());
  for (uint64_t at = content.size() - 8; at > 8; at -= 7) {
    ASSERT_EQ(of_file.number<uint64_t>(at), of_bytes.number<uint64_t>(at)) << at;
  }
  // Across the end of a window, and the last byte.
  for (const uint64_t at : {65'533UL, 65'536UL, 131'069UL, content.size() - 4}) {
    EXPECT_EQ(of_file.number<uint32_t>(at), of_bytes.number<uint32_t>(at)) << at;
  }
  EXPECT_EQ(of_file.number<char>(content.size() - 1), content.back());
}

TEST(ByteReader, KeepsThePartsOfAFile) {
  const TemporaryFolder folder;
  const auto content = long_content();
  write_file_atomically(folder / "a", content);
  const ByteReader reader{std::filesystem::path(folder / "a")};
  const auto first = reader.part(4, 100'000);
  const auto second = reader.part(150'000, 50'000);
  reader.number<uint32_t>(100);
  EXPECT_EQ(first, std::string_view(content).substr(4, 100'000));
  EXPECT_EQ(second, std::string_view(content).substr(150'000, 50'000));
  EXPECT_EQ(reader.part(200'000, 0), "");
}

TEST(ByteReader, RefusesWhatLiesBeyondTheEnd) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", "12345678");
  const ByteReader of_file{std::filesystem::path(folder / "a")};
  const ByteReader of_bytes("12345678", folder / "a");
  for (const auto* reader : {&of_file, &of_bytes}) {
    const auto where = folder / "a";
    EXPECT_EQ(error_of([&] { reader->number<uint32_t>(5); }),
              where + ": cut off: needs 4 bytes at 5, the file has 8");
    EXPECT_EQ(error_of([&] { reader->part(~uint64_t{0}, 2); }),
              where + ": cut off: needs 2 bytes at 18446744073709551615, the file has 8");
    EXPECT_EQ(error_of([&] { reader->part(2, ~uint64_t{0}); }),
              where + ": cut off: needs 18446744073709551615 bytes at 2, the file has 8");
  }
}

TEST(ByteReader, SaysSoIfAFileShrinksMeanwhile) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", long_content());
  const ByteReader reader{std::filesystem::path(folder / "a")};
  std::filesystem::resize_file(folder / "a", 100);
  EXPECT_NE(error_of([&] { reader.part(0, 1000); }).find("is somebody writing it?"),
            std::string::npos);
  EXPECT_NE(error_of([&] { reader.number<uint32_t>(150'000); }).find("is somebody writing it?"),
            std::string::npos);
}

TEST(ByteReader, NamesAFileThatIsNotThere) {
  EXPECT_EQ(error_of([] { ByteReader{std::filesystem::path("/no/such")}; }),
            "/no/such: cannot read: No such file or directory");
}

}  // namespace kelvin::byte_reader_test
