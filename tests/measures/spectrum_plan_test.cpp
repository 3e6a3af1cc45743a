#include "kelvin/measures/spectrum_plan.h"

#include <gtest/gtest.h>

#include <vector>

namespace kelvin::spectrum_plan_test {

using Passes = std::vector<int64_t>;

constexpr SpectrumOptions kExact{.protocol = SpectrumProtocol::exact};
constexpr int64_t kGigabyte = int64_t{1} << 30;

TEST(SpectrumPlan, TakesOnePassWhereTheMemoryIsAmple) {
  const auto plan = plan_spectra({64, 2000, 500}, {}, {.memory = kGigabyte, .samples = 10'000});
  EXPECT_EQ(plan.passes, (Passes{0, 0, 0}));
  EXPECT_EQ(plan.count(), 1);
  EXPECT_TRUE(plan.fits(kGigabyte));
  EXPECT_GE(plan.at_once, kSpectraAtOnce);
  EXPECT_EQ(plan.peak(), plan.held + plan.bytes[0] + plan.bytes[1] + plan.bytes[2]);
}

TEST(SpectrumPlan, KeepsTheOrderOfLayersOverSeveralPassesAndTheMemoryOfEach) {
  const std::vector<int64_t> features(3, 900);
  const SpectrumLimits limits{.memory = 600'000, .samples = 50};
  const auto plan = plan_spectra(features, kExact, limits);
  EXPECT_EQ(plan.passes, (Passes{0, 1, 2}));
  EXPECT_EQ(plan.peak(), plan.held + plan.bytes[0]);
  EXPECT_LE(plan.peak(), limits.memory);
}

TEST(SpectrumPlan, SaysWhenNoNumberOfPassesHelps) {
  const SpectrumLimits limits{.memory = 100'000, .samples = 50};
  const auto plan = plan_spectra({900}, kExact, limits);
  EXPECT_FALSE(plan.fits(limits.memory));
  EXPECT_EQ(plan.at_once, 1);
}

TEST(SpectrumPlan, IsExactInsteadOfASketchForFewSamplesIfTheyFit) {
  const std::vector<int64_t> features = {100'000};
  const auto protocol = [&](const SpectrumLimits& limits) {
    return plan_spectra(features, {}, limits).options.protocol;
  };
  EXPECT_EQ(protocol({.memory = 4 * kGigabyte, .samples = 1024}), SpectrumProtocol::exact);
  EXPECT_EQ(protocol({.memory = 4 * kGigabyte, .samples = 1025}), SpectrumProtocol::sketch);
  EXPECT_EQ(protocol({.memory = kGigabyte / 8, .samples = 1024}), SpectrumProtocol::sketch);
}

TEST(SpectrumPlan, CountsAnchorsAndPilotSamplesOfSketchedLayersOnly) {
  const SpectrumLimits limits{.memory = 4 * kGigabyte, .samples = 10'000};
  const SpectrumOptions anchored{.sketch = 512, .anchors = 64};
  const SpectrumOptions plain{.sketch = 512, .anchors = 0};
  const auto held = [&](int64_t dims, const SpectrumOptions& options) {
    return plan_spectra({dims}, options, limits).held;
  };
  EXPECT_GT(held(10'000, anchored), held(10'000, plain));
  EXPECT_EQ(held(512, anchored), held(512, plain));
}

TEST(SpectrumPlan, TakesHalfOfFewSamplesAsPilots) {
  EXPECT_EQ(pilot_samples({.samples = 0}), 1024);
  EXPECT_EQ(pilot_samples({.samples = 1}), 1);
  EXPECT_EQ(pilot_samples({.samples = 100}), 50);
  EXPECT_EQ(pilot_samples({.samples = 50'000}), 1024);
}

TEST(SpectrumPlan, LeavesAQuarterOfTheMemoryToOthers) {
  EXPECT_EQ(spectrum_budget({.memory = 400}), 300);
  EXPECT_EQ(spectrum_budget({.memory = 400}, 100), 200);
  EXPECT_EQ(spectrum_budget({.memory = 400}, 500), 0);
}

}  // namespace kelvin::spectrum_plan_test
