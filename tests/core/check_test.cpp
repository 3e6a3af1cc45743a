#include "kelvin/core/check.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/errors.h"

namespace kelvin::check_test {

TEST(Check, JoinsAllPartsIntoOneMessage) {
  EXPECT_EQ(error_of([] {
              check(false, "rank", ": must be in (0, ", 1.5, "), got ", int64_t{7}, ' ', true);
            }),
            "rank: must be in (0, 1.5), got 7 1");
}

TEST(Check, LetsWhatHoldsPass) { EXPECT_NO_THROW(check(true, "never seen")); }

TEST(Error, IsCaughtAsAStandardException) { EXPECT_THROW(check(false, "x"), std::runtime_error); }

}  // namespace kelvin::check_test
