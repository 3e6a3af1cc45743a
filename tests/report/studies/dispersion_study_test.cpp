#include <gtest/gtest.h>

#include "kelvin/report/studies/study.h"

namespace kelvin::dispersion_study_test {

Readings bounds_of(double spread, double length) {
  Readings readings = {{.name = "dispersion_length",
                        .value = length,
                        .definition = {{"spread", spread}, {"temperature", 1}}}};
  for (const char* bound : {"lemma", "sharp"}) {
    for (const char* side : {"low", "high"}) {
      readings.push_back(
          {.name = "weight_bound",
           .value = 0.5,
           .definition = {{"spread", spread}, {"n", 16}, {"bound", bound}, {"side", side}}});
    }
  }
  readings.push_back(
      {.name = "entropy_bound", .value = 1, .definition = {{"spread", spread}, {"n", 16}}});
  return readings;
}

TEST(DispersionStudy, SaysFromWhichLengthOnNoWeightIsAboveOneHalf) {
  const auto study = dispersion_study(bounds_of(5.69, 296.9));
  EXPECT_EQ(study.findings.at(0),
            "Spread 5.69 at T = 1: no weight can be above one half from n = 297 on (1 + exp(spread "
            "/ T)).");
  EXPECT_EQ(study.tables.at(0).rows.at(0).at(0), "16");
  EXPECT_EQ(study.tables.at(0).rows.at(0).at(7), "2.773");
  EXPECT_EQ(study.figures.size(), 2U);
}

}  // namespace kelvin::dispersion_study_test
