#include "kelvin/formats/idx_file.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/errors.h"

namespace kelvin::idx_file_test {

std::string big_endian(const std::vector<uint32_t>& numbers) {
  std::string bytes;
  for (const auto number : numbers) {
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>((number >> shift) & 0xff);
  }
  return bytes;
}

std::string images_file() { return big_endian({0x803, 2, 2, 3}) + "abcdefABCDE\xff"; }
std::string labels_file() { return big_endian({0x801, 3}) + std::string("\x00\x09\x03", 3); }

std::string refusal_of_images(const std::string& bytes) {
  return error_of([&] { parse_idx_images(bytes, "a"); });
}

std::string refusal_of_labels(const std::string& bytes) {
  return error_of([&] { parse_idx_labels(bytes, "a", 10); });
}

TEST(ParseIdxImages, GivesOneChannelInRows) {
  const auto images = parse_idx_images(images_file(), "a");
  EXPECT_EQ(images.channels, 1);
  EXPECT_EQ(images.height, 2);
  EXPECT_EQ(images.width, 3);
  EXPECT_EQ(std::string(images.pixels.begin(), images.pixels.end()), "abcdefABCDE\xff");
  EXPECT_TRUE(images.labels.empty());
}

TEST(ParseIdxLabels, GivesEachLabel) {
  EXPECT_EQ(parse_idx_labels(labels_file(), "a", 10), (std::vector<int64_t>{0, 9, 3}));
}

TEST(ParseIdxLabels, RejectsALabelBeyondTheClasses) {
  EXPECT_EQ(error_of([] { parse_idx_labels(labels_file(), "a", 9); }),
            "a: byte 9: label must be below 9, is 9");
}

TEST(ParseIdx, RejectsAFileCutOffAtAnyByte) {
  for (size_t length = 0; length < images_file().size(); ++length) {
    EXPECT_NE(refusal_of_images(images_file().substr(0, length)), "");
  }
  for (size_t length = 0; length < labels_file().size(); ++length) {
    EXPECT_NE(refusal_of_labels(labels_file().substr(0, length)), "");
  }
  EXPECT_EQ(refusal_of_images("abc"), "a: cut off: an idx head has 16 bytes, the file has 3");
  EXPECT_EQ(refusal_of_labels(labels_file().substr(0, 10)),
            "a: byte 4: sizes need more than the 2 bytes that follow the head");
}

TEST(ParseIdx, RejectsBytesAfterTheData) {
  EXPECT_EQ(refusal_of_images(images_file() + "x"),
            "a: sizes need 12 bytes after the head, the file has 13");
  EXPECT_EQ(refusal_of_labels(labels_file() + "x"),
            "a: sizes need 3 bytes after the head, the file has 4");
}

TEST(ParseIdx, RejectsAnotherMagicNumber) {
  EXPECT_EQ(refusal_of_images(big_endian({0x801, 2, 2, 3}) + std::string(12, 'x')),
            "a: byte 0: magic number must be 0x00000803, is 0x00000801");
  EXPECT_EQ(refusal_of_labels(images_file()),
            "a: byte 0: magic number must be 0x00000801, is 0x00000803");
}

TEST(ParseIdx, RejectsSizesOfZero) {
  EXPECT_EQ(refusal_of_images(big_endian({0x803, 2, 0, 3})),
            "a: byte 4: sizes need more than the 0 bytes that follow the head");
  EXPECT_EQ(refusal_of_images(big_endian({0x803, 0, 2, 3}) + "x"),
            "a: byte 4: size must be positive, is 0");
  EXPECT_EQ(refusal_of_images(big_endian({0x803, 2, 2, 0}) + std::string(12, 'x')),
            "a: byte 12: size must be positive, is 0");
  EXPECT_EQ(refusal_of_labels(big_endian({0x801, 0})), "a: byte 4: size must be positive, is 0");
}

TEST(ParseIdx, RejectsAbsurdSizesBeforeItReservesThem) {
  EXPECT_EQ(refusal_of_images(big_endian({0x803, 2, 0xffffffff, 0xffffffff}) + "abc"),
            "a: byte 8: sizes need more than the 3 bytes that follow the head");
  EXPECT_EQ(refusal_of_labels(big_endian({0x801, 0xffffffff})),
            "a: byte 4: sizes need more than the 0 bytes that follow the head");
}

}  // namespace kelvin::idx_file_test
