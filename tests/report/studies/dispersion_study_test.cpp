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

TEST(HeadsStudy, ComparesHeadsWithTheirBounds) {
  Readings readings;
  const auto add = [&](const char* name, double value, const Definition& with) {
    auto meaning = with;
    meaning["n"] = 16;
    meaning["sets"] = 50;
    meaning["trained_with"] = "softmax";
    readings.push_back({.name = name, .value = value, .definition = meaning});
  };
  add("logit_spread", 3, {{"statistic", "mean over sets"}});
  add("logit_spread", 5, {{"statistic", "largest of a set"}});
  add("logit_spread_bound", 20, {});
  add("attention_top_weight", 0.5, {{"attention", "softmax"}});
  add("attention_top_weight_bound", 0.9, {});
  add("attention_entropy_nats", 1.5, {{"attention", "softmax"}});
  add("dispersion_length", 149.4, {});
  add("dispersion_violations", 0, {});
  const auto study = heads_study(readings);
  EXPECT_EQ(study.tables.at(0).rows.at(0),
            (std::vector<std::string>{"16", "3.00", "5.00", "20.0", "0.5000", "0.9000", "1.50",
                                      "2.77", "0"}));
  EXPECT_TRUE(study.findings.at(0).starts_with("0 of 50 sets have weights beyond"));
  EXPECT_TRUE(study.findings.at(1).ends_with("from n = 150 on."));
}

}  // namespace kelvin::dispersion_study_test
