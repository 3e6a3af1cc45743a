#include "kelvin/ops/reference_ops.h"

#include <gtest/gtest.h>

#include <thread>

namespace kelvin::reference_ops_test {

TEST(PlainPath, LastsAsLongAsItsScope) {
  EXPECT_FALSE(is_plain());
  {
    const ReferenceOpsScope plain(true);
    EXPECT_TRUE(is_plain());
    {
      const ReferenceOpsScope fused(false);
      EXPECT_FALSE(is_plain());
    }
    EXPECT_TRUE(is_plain());
  }
  EXPECT_FALSE(is_plain());
}

TEST(PlainPath, IsOneThreadsOwn) {
  const ReferenceOpsScope plain(true);
  bool elsewhere = true;
  std::thread([&] { elsewhere = is_plain(); }).join();
  EXPECT_FALSE(elsewhere);
}

}  // namespace kelvin::reference_ops_test
