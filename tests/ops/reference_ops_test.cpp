#include "kelvin/ops/reference_ops.h"

#include <gtest/gtest.h>

#include <thread>

namespace kelvin::reference_ops_test {

TEST(ReferenceOps, LastAsLongAsTheirScope) {
  EXPECT_FALSE(uses_reference_ops());
  {
    const ReferenceOpsScope reference(true);
    EXPECT_TRUE(uses_reference_ops());
    {
      const ReferenceOpsScope fused(false);
      EXPECT_FALSE(uses_reference_ops());
    }
    EXPECT_TRUE(uses_reference_ops());
  }
  EXPECT_FALSE(uses_reference_ops());
}

TEST(ReferenceOps, AreOneThreadsOwn) {
  const ReferenceOpsScope reference(true);
  bool elsewhere = true;
  std::thread([&] { elsewhere = uses_reference_ops(); }).join();
  EXPECT_FALSE(elsewhere);
}

}  // namespace kelvin::reference_ops_test
