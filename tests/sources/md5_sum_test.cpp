#include "kelvin/sources/md5_sum.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/command.h"
#include "tests/support/errors.h"

namespace kelvin::md5_sum_test {

// RFC 1321, A.5.
TEST(Md5, EqualsTheTestSuiteOfItsStandard) {
  EXPECT_EQ(md5_of(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_of("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(
      md5_of("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
      "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(Md5, IsTheSameForAFileAsForItsBytes) {
  const TemporaryFolder folder;
  // Around the size of the pieces in which a file is read.
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65535}, size_t{65536}, size_t{65537}}) {
    const std::string bytes(size, 'k');
    std::ofstream(folder / "x", std::ios::binary) << bytes;
    EXPECT_EQ(md5_of_file(folder / "x"), md5_of(bytes)) << size;
  }
}

TEST(Md5, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { md5_of_file(folder / "x"); }),
            folder / "x" + ": cannot read: No such file or directory");
  EXPECT_EQ(error_of([&] { md5_of_file(folder.path()); }),
            folder.path().string() + ": is a folder, must be a file");
}

}  // namespace kelvin::md5_sum_test
