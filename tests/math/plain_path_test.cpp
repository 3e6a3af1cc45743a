#include "kelvin/math/plain_path.h"

#include <gtest/gtest.h>

#include <thread>

namespace kelvin {
namespace {

TEST(PlainPath, LastsAsLongAsItsScope) {
  EXPECT_FALSE(is_plain());
  {
    const PlainScope plain(true);
    EXPECT_TRUE(is_plain());
    {
      const PlainScope fused(false);
      EXPECT_FALSE(is_plain());
    }
    EXPECT_TRUE(is_plain());
  }
  EXPECT_FALSE(is_plain());
}

TEST(PlainPath, IsOneThreadsOwn) {
  const PlainScope plain(true);
  bool elsewhere = true;
  std::thread([&] { elsewhere = is_plain(); }).join();
  EXPECT_FALSE(elsewhere);
}

}  // namespace
}  // namespace kelvin
