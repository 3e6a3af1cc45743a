#include "kelvin/experiment/product_peak.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "tests/support/errors.h"

namespace kelvin {
namespace {

TEST(ProductPeak, CountsTwoOperationsForEachMultiplyAdd) {
  RunContext context;
  // By this clock every product takes half a second, but for the third: a quarter of one.
  context.seconds = [calls = std::make_shared<int>(0), now = std::make_shared<double>(0)] {
    const bool ends_third = ++*calls == 6;
    return *now += ends_third ? 0.25 : 0.5;
  };
  const auto peak = product_peak(Precision::fp32, context);
  EXPECT_DOUBLE_EQ(peak.gflops, 2e-9 * 2048 * 2048 * 2048 / 0.25);
  EXPECT_EQ(peak.precision, "fp32");
}

TEST(ProductPeak, IsThatOfFloat32WhereBfloat16IsImitated) {
  RunContext context;
  context.seconds = [now = std::make_shared<double>(0)] { return ++*now; };
  const auto peak = product_peak(Precision::bf16, context);
  EXPECT_EQ(peak.precision, multiplies_bfloat16(torch::kCPU) ? "bf16" : "fp32");
}

TEST(ProductPeak, RejectsAClockThatStandsStill) {
  EXPECT_EQ(error_of([] { product_peak(Precision::fp32, {}); }),
            "product_peak: needs a clock that goes on, a product took 0 s");
}

}  // namespace
}  // namespace kelvin
