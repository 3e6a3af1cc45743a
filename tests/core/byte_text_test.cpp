#include "kelvin/core/byte_text.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

TEST(ByteText, HasTheLargestUnitThatLeavesOne) {
  EXPECT_EQ(byte_text(0), "0 B");
  EXPECT_EQ(byte_text(1023), "1023 B");
  EXPECT_EQ(byte_text(1024), "1 KiB");
  EXPECT_EQ(byte_text(int64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(byte_text(int64_t{5000} << 40), "5000 TiB");
}

TEST(ByteText, IsReadAsPeopleWriteIt) {
  EXPECT_EQ(bytes_of("4GiB", "x"), int64_t{4} << 30);
  EXPECT_EQ(bytes_of("512 MiB", "x"), int64_t{512} << 20);
  EXPECT_EQ(bytes_of("2G", "x"), int64_t{2} << 30);
  EXPECT_EQ(bytes_of("0.5KiB", "x"), 512);
  EXPECT_EQ(bytes_of("1000", "x"), 1000);
  EXPECT_EQ(bytes_of("1000 B", "x"), 1000);
}

TEST(ByteText, RejectsWhatIsNoAmount) {
  for (const char* text : {"", "GiB", "4GB", "4 apples", "0", "-1GiB", "nan", "inf", "1e30"}) {
    EXPECT_EQ(error_of([&] { bytes_of(text, "measure.memory"); }),
              std::string("measure.memory: must be an amount of memory such as 4GiB or 512MiB, "
                          "got '") +
                  text + "'");
  }
}

}  // namespace
}  // namespace kelvin
