#include "kelvin/statistics/paired_test.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"

namespace kelvin::paired_test_test {

TEST(StudentTails, OfOneDegreeOfFreedomAreThoseOfCauchy) {
  for (const double t : {0.1, 1.0, 12.706205}) {
    EXPECT_NEAR(student_tails(t, 1), 1 - 2 * std::atan(t) / std::acos(-1.0), 1e-12);
  }
}

// SciPy's 2 * t.sf(2.262157, 9) and 2 * t.sf(0.5, 9), 2 * t.sf(20, 9).
TEST(StudentTails, AreThoseOfScipy) {
  EXPECT_NEAR(student_tails(2.262157, 9), 0.0500000133, 1e-9);
  EXPECT_NEAR(student_tails(0.5, 9), 0.6290712998, 1e-9);
  EXPECT_NEAR(student_tails(-0.5, 9), student_tails(0.5, 9), 0);
  EXPECT_EQ(student_tails(std::numeric_limits<double>::infinity(), 9), 0);
  EXPECT_EQ(student_tails(0, 9), 1);
}

TEST(PairedTest, LooksAtDifferencesAlone) {
  const auto a = paired_test({1, 2, 3.5}, {0, 1.5, 2});
  const auto b = paired_test({11, 2, 103.5}, {10, 1.5, 102});
  EXPECT_NEAR(a.difference, 1, 1e-12);
  EXPECT_NEAR(a.t, std::sqrt(12.0), 1e-12);
  EXPECT_NEAR(a.p, b.p, 1e-9);
}

TEST(PairedTest, ChangesItsSignWithTheOrder) {
  const auto forward = paired_test({1, 2, 4}, {0, 0, 1});
  const auto backward = paired_test({0, 0, 1}, {1, 2, 4});
  EXPECT_EQ(forward.t, -backward.t);
  EXPECT_EQ(forward.p, backward.p);
}

TEST(PairedTest, OfEqualDifferencesIsCertain) {
  EXPECT_EQ(paired_test({2, 3}, {1, 2}).p, 0);
  EXPECT_EQ(paired_test({2, 3}, {2, 3}).p, 1);
}

TEST(PairedTest, RejectsWhatIsNotPaired) {
  EXPECT_EQ(error_of([] {
              paired_test({1, 2}, {1});
            }),
            "paired_test: needs at least two pairs, got 2 and 1 numbers");
  EXPECT_EQ(error_of([] { paired_test({1}, {1}); }),
            "paired_test: needs at least two pairs, got 1 and 1 numbers");
  EXPECT_EQ(error_of([] { student_tails(1, 0); }),
            "student_tails: needs a number and degrees of freedom above 0, got 1 and 0");
}

}  // namespace kelvin::paired_test_test
