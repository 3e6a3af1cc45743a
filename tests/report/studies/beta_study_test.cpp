#include <gtest/gtest.h>

#include "kelvin/report/studies/study.h"

namespace kelvin::beta_study_test {

Readings fitted() {
  const Definition of_size = {{"n", 16}, {"sets", 40}, {"at_the_least", 1}, {"at_the_most", 2}};
  Readings readings = {{.name = "best_beta", .value = 1.5, .definition = of_size},
                       {.name = "attention_entropy_nats", .value = 2.25, .definition = of_size},
                       {.name = "beta_error", .value = 0.125}};
  for (const char* polynomial : {"published", "fitted"}) {
    const Definition with = {{"polynomial", polynomial}, {"coefficients", {0, 0, 0, 1, 1}}};
    readings.push_back({.name = "beta_peak_entropy", .value = 4.4, .definition = with});
    readings.push_back({.name = "beta_peak", .value = 2.4, .definition = with});
    if (std::string(polynomial) == "published") {
      readings.push_back({.name = "beta_off_entropy", .value = 5.94452, .definition = with});
    }
  }
  return readings;
}

TEST(BetaStudy, SaysWhereEachPolynomialSwitchesItselfOff) {
  const auto study = beta_study(fitted());
  EXPECT_EQ(study.findings.at(0),
            "The fitted coefficients, the highest power of the entropy first: 0, 0, 0, 1, 1; the "
            "root mean square of what they leave is 0.125.");
  EXPECT_EQ(study.findings.at(1),
            "The published polynomial is largest, 2.4, at 4.4 nats and falls back to 1 at 5.9445 "
            "nats, the entropy of 382 equal logits: from there on it switches itself off, unless "
            "past_the_peak is hold or grow.");
  EXPECT_EQ(study.findings.at(2),
            "The fitted polynomial is largest, 2.4, at 4.4 nats and stays above 1 beyond.");
}

TEST(BetaStudy, HasARowForEachSize) {
  EXPECT_EQ(beta_study(fitted()).tables.at(0).rows.at(0),
            (std::vector<std::string>{"16", "2.25", "1.50", "1", "2", "40"}));
}

}  // namespace kelvin::beta_study_test
