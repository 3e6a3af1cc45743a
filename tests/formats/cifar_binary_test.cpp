#include "kelvin/formats/cifar_binary.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

std::string record(const std::string& labels, char first) {
  std::string bytes = labels;
  for (int i = 0; i < 3072; ++i) bytes += static_cast<char>(first + i);
  return bytes;
}

TEST(ParseCifarBinary, GivesLabelsAndPlanesOfColour) {
  const auto images = parse_cifar_binary(record("\x07", 'a') + record("\x02", 'x'), "a", {});
  EXPECT_EQ(images.labels, (std::vector<int64_t>{7, 2}));
  EXPECT_EQ(images.channels, 3);
  EXPECT_EQ(images.height, 32);
  EXPECT_EQ(images.width, 32);
  ASSERT_EQ(images.pixels.size(), 2U * 3072);
  EXPECT_EQ(images.pixels.at(0), 'a');
  EXPECT_EQ(images.pixels.at(1), 'b');
  EXPECT_EQ(images.pixels.at(3072), 'x');
  EXPECT_EQ(images.pixels.at(6143), static_cast<uint8_t>('x' + 3071));
}

TEST(ParseCifarBinary, TakesTheChosenOfTwoLabels) {
  const auto bytes = record("\x13\x63", 'a');
  const CifarRecord coarse{.label_bytes = 2, .label_index = 0, .classes = 20};
  const CifarRecord fine{.label_bytes = 2, .label_index = 1, .classes = 100};
  EXPECT_EQ(parse_cifar_binary(bytes, "a", coarse).labels, std::vector<int64_t>{19});
  EXPECT_EQ(parse_cifar_binary(bytes, "a", fine).labels, std::vector<int64_t>{99});
  EXPECT_EQ(parse_cifar_binary(bytes, "a", fine).pixels.at(0), 'a');
}

TEST(ParseCifarBinary, RejectsALabelBeyondTheClassesAndSaysWhere) {
  const auto bytes = record("\x01", 'a') + record("\x0a", 'a');
  EXPECT_EQ(error_of([&] { parse_cifar_binary(bytes, "a.bin", {}); }),
            "a.bin: byte 3073: label must be below 10, is 10");
}

TEST(ParseCifarBinary, RejectsPartsOfRecords) {
  EXPECT_EQ(error_of([] { parse_cifar_binary(record("\x01", 'a') + "xyz", "a.bin", {}); }),
            "a.bin: byte 3073: cut off: records have 3073 bytes, the last one has 3");
  EXPECT_EQ(error_of([] { parse_cifar_binary("x", "a.bin", {}); }),
            "a.bin: byte 0: cut off: records have 3073 bytes, the last one has 1");
}

TEST(ParseCifarBinary, RejectsAnEmptyFile) {
  EXPECT_EQ(error_of([] { parse_cifar_binary("", "a.bin", {}); }),
            "a.bin: is empty, must hold records of 3073 bytes");
}

TEST(ParseCifarBinary, RejectsALabelThatRecordsDoNotHave) {
  EXPECT_EQ(error_of([] { parse_cifar_binary(record("\x01", 'a'), "a.bin", {.label_index = 1}); }),
            "a.bin: label 1 must be one of the 1 of a record");
}

}  // namespace
}  // namespace kelvin
