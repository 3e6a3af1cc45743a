#include "kelvin/experiment/tasks/theory_dispersion.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support/errors.h"

namespace kelvin::theory_dispersion_test {

TEST(TheoryDispersion, SaysFromWhichLengthOnNoWeightIsAboveOneHalf) {
  const auto readings = theory_dispersion({.spreads = {5.69}, .lengths = {16, 1024}}, {});
  EXPECT_EQ(readings.at(0).name, "dispersion_length");
  EXPECT_NEAR(readings.at(0).value, 297, 1);
  for (const auto& reading : readings) {
    if (reading.name != "weight_bound" || reading.definition.at("bound") != "sharp" ||
        reading.definition.at("side") != "high") {
      continue;
    }
    EXPECT_EQ(reading.value > 0.5, reading.definition.at("n") == 16);
  }
}

TEST(TheoryDispersion, HasBothBoundsAndTheEntropyOfEachLength) {
  const auto readings = theory_dispersion({.spreads = {1, 2}, .lengths = {2, 4, 8}}, {});
  EXPECT_EQ(readings.size(), 2U * (1 + 3 * 5));
}

TEST(TheoryDispersion, RejectsWhatIsNoSoftmax) {
  EXPECT_EQ(error_of([] { theory_dispersion({.spreads = {}}, {}); }),
            "theory dispersion: needs at least one spread and one length");
  EXPECT_EQ(error_of([] { theory_dispersion({.lengths = {0}}, {}); }),
            "theory dispersion: lengths must be from 1 to 1000000000, got 0");
  EXPECT_EQ(error_of([] { theory_dispersion({.spreads = {-1}}, {}); }),
            "dispersion_length: the spread must be a finite number, not below 0, got -1");
}

}  // namespace kelvin::theory_dispersion_test
