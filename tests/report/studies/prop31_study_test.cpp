#include <gtest/gtest.h>

#include "kelvin/report/studies/study.h"

namespace kelvin::prop31_study_test {

void add_gap(Readings& readings, double gap, double bound, const Definition& definition) {
  readings.push_back({.name = "singular_gap", .value = gap, .definition = definition});
  readings.push_back({.name = "singular_gap_bound", .value = bound, .definition = definition});
  readings.push_back({.name = "column_similarity", .value = 1, .definition = definition});
}

TEST(Prop31Study, CountsViolationsOfRandomMatrices) {
  const Definition common = {{"matrices", 100}, {"sizes", {2, 64}}, {"tolerance", 1e-12}};
  Readings readings = {{.name = "singular_gap_violations", .value = 0, .definition = common},
                       {.name = "singular_gap_slack", .value = 0.25, .definition = common}};
  add_gap(readings, 1, 1.5, {{"statistic", "mean"}, {"scale_from", 0.1}, {"scale_to", 1.0}});
  add_gap(readings, 2, 2, {{"case", "tight"}, {"matrix", "same"}, {"n", 4}});
  add_gap(readings, 0, 0.5, {{"case", "loose"}, {"matrix", "permutation"}, {"n", 4}});
  const auto study = prop31_study(readings);
  EXPECT_TRUE(study.findings.at(0).starts_with(
      "0 of 100 random matrices of sizes 2 to 64 are beyond the bound"));
  EXPECT_EQ(study.tables.at(0).rows.at(0),
            (std::vector<std::string>{"0.1 to 1", "1", "1.5", "0.5", "1"}));
  EXPECT_EQ(study.tables.at(1).rows.at(0).at(0), "tight: same, n = 4");
  EXPECT_EQ(study.figures.size(), 1U);
}

TEST(Prop31Study, SaysWhetherTheBoundHoldsForGivenOnes) {
  Readings readings;
  const Definition common = {{"samples", 10}, {"temperature", 2}};
  add_gap(readings, 1, 1.5, common);
  EXPECT_TRUE(prop31_study(readings).findings.at(0).ends_with("The bound holds."));
  readings[1].value = 0.9;
  EXPECT_TRUE(prop31_study(readings).findings.at(0).ends_with("The bound is violated."));
}

}  // namespace kelvin::prop31_study_test
