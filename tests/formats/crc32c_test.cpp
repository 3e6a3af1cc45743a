#include "kelvin/formats/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace kelvin::crc32c_test {

// RFC 3720, appendix B.4, and the check value of the catalogues of checksums.
TEST(Crc32c, HasThePublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43U);
  std::string ascending;
  for (char i = 0; i < 32; ++i) ascending += i;
  EXPECT_EQ(crc32c(ascending), 0x46DD794EU);
  EXPECT_EQ(crc32c(std::string(ascending.rbegin(), ascending.rend())), 0x113FDB5CU);
}

// On every processor, of every length, wherever the bytes begin and wherever they are parted.
TEST(Crc32c, IsTheSameByTablesAndPartByPart) {
  std::string bytes;
  uint32_t random = 1;
  for (int i = 0; i < 100; ++i) {
    random = random * 1664525 + 1013904223;
    bytes += static_cast<char>(random >> 24);
  }
  EXPECT_EQ(crc32c_by_tables("123456789"), 0xE3069283U);
  for (size_t begin = 0; begin < 16; ++begin) {
    for (size_t end = begin; end < bytes.size(); ++end) {
      const auto part = std::string_view(bytes).substr(begin, end - begin);
      const auto whole = crc32c(part);
      ASSERT_EQ(whole, crc32c_by_tables(part)) << begin << " to " << end;
      const auto half = part.size() / 2;
      ASSERT_EQ(whole, crc32c(part.substr(half), crc32c(part.substr(0, half))));
      ASSERT_EQ(whole, crc32c_by_tables(part.substr(half), crc32c(part.substr(0, half))));
    }
  }
}

}  // namespace kelvin::crc32c_test
