#include "kelvin/experiment/run/same_arithmetic.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace kelvin::same_arithmetic_test {

using Json = nlohmann::ordered_json;

Json metadata() {
  return {{"started", "now"},
          {"versions",
           {{"torch", "1.13"}, {"blas", "open"}, {"cpu_capability", "AVX2"}, {"threads", 2}}},
          {"machine", {{"cpu_features", {"avx2"}}, {"cores", 2}}}};
}

TEST(SameArithmetic, AllowsWhatDoesNotRound) {
  auto now = metadata();
  now["started"] = "later";
  now["machine"]["cores"] = 64;
  EXPECT_NO_THROW(check_same_arithmetic("run", metadata(), now));
}

TEST(SameArithmetic, RefusesOtherThreads) {
  auto now = metadata();
  now["versions"]["threads"] = 1;
  EXPECT_EQ(error_of([&] { check_same_arithmetic("run", metadata(), now); }),
            "run: would not go on to the same bits: threads 1 instead of 2; --inexact does it "
            "nevertheless");
}

TEST(SameArithmetic, NamesAllThatDiffers) {
  auto now = metadata();
  now["versions"]["blas"] = "mkl";
  now["machine"]["cpu_features"] = {"avx2", "avx512f"};
  EXPECT_EQ(error_of([&] { check_same_arithmetic("run", metadata(), now); }),
            "run: would not go on to the same bits: processor features [\"avx2\",\"avx512f\"] "
            "instead of [\"avx2\"], BLAS \"mkl\" instead of \"open\"; --inexact does it "
            "nevertheless");
}

TEST(SameArithmetic, RefusesKernelsOfAnotherProcessor) {
  auto then = metadata();
  then["versions"]["blas_kernels"] = "Haswell";
  auto now = metadata();
  now["versions"]["blas_kernels"] = "SkylakeX";
  EXPECT_EQ(error_of([&] { check_same_arithmetic("run", then, now); }),
            "run: would not go on to the same bits: kernels of the BLAS \"SkylakeX\" instead of "
            "\"Haswell\"; --inexact does it nevertheless");
}

TEST(SameArithmetic, RefusesWhatIsNotKnown) {
  EXPECT_NE(error_of([] { check_same_arithmetic("run", Json::object(), metadata()); }), "");
}

}  // namespace kelvin::same_arithmetic_test
