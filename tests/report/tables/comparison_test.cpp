#include "kelvin/report/tables/comparison.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kelvin/core/check.h"
#include "tests/report/report_runs.h"

namespace kelvin::comparison_test {

Runs two_by_three() {
  Runs runs;
  for (int64_t seed = 0; seed < 3; ++seed) {
    runs.push_back(run_with_rank(100, seed, 10 + static_cast<double>(seed)));
    runs.push_back(run_with_rank(1, seed, 49));
  }
  return runs;
}

TEST(Compare, GroupsByWhatDiffersButTheSeedAndOrdersByTemperature) {
  const auto comparison = compare(two_by_three());
  ASSERT_EQ(comparison.groups.size(), 2);
  EXPECT_EQ(comparison.groups[0].label, "temperature 1");
  EXPECT_EQ(comparison.groups[1].label, "temperature 100");
  EXPECT_EQ(comparison.groups[1].short_label, "T = 100");
  EXPECT_EQ(comparison.groups[1].runs.size(), 3);
}

TEST(Compare, LabelsTemperatureFirst) {
  auto one = bare_run(1, 0);
  auto other = bare_run(100, 0);
  one.config.set("model.name", "mlp");
  other.config.set("model.name", "resnet20");
  other.config.set("train.lr", 0.2);
  const auto comparison = compare({one, other});
  EXPECT_EQ(comparison.groups[1].label, "temperature 100, model resnet20, lr 0.2");
  EXPECT_EQ(comparison.groups[0].label, "temperature 1, model mlp, lr unset");
}

TEST(Compare, TakesAWholeAndARealNumberOfEqualValueAsEqual) {
  auto one = bare_run(1, 0);
  auto other = bare_run(1, 1);
  other.config.set("train.temperature", 1);
  EXPECT_EQ(compare({one, other}).groups.size(), 1);
}

TEST(Compare, SummarisesOverSeedsAndPairsDifferencesBySeed) {
  const auto comparison = compare(two_by_three());
  const auto& low = comparison.groups[0].measured[0];
  const auto& high = comparison.groups[1].measured[0];
  EXPECT_EQ(high.summary.mean, 11);
  EXPECT_EQ(high.summary.count, 3);
  const auto difference = paired_difference(low, high);
  EXPECT_EQ(difference->mean, -38);
  // Student's t with two degrees of freedom times 1 / sqrt(3).
  EXPECT_NEAR(difference->half_width, 4.302653 / std::sqrt(3.0), 1e-9);
}

TEST(Compare, HasNoDifferenceWithoutACommonSeed) {
  EXPECT_FALSE(paired_difference({.seeds = {{.seed = 1, .value = 2}}},
                                 {.seeds = {{.seed = 2, .value = 2}}}));
}

TEST(Compare, CountsARepeatedSeedOnceAndPrefersTheFinishedRun) {
  auto runs = two_by_three();
  runs.push_back(run_with_rank(100, 0, 77));
  runs[0].status = RunStatus::stopped;
  const auto comparison = compare(runs);
  EXPECT_EQ(comparison.repeated, std::vector<size_t>{0});
  EXPECT_EQ(comparison.groups[1].measured[0].seeds[0].value, 77);
}

TEST(Compare, RefusesNoRuns) { EXPECT_THROW(compare({}), Error); }

TEST(ComparisonTable, HasADifferenceForTwoGroupsOnly) {
  const auto two = comparison_table(compare(two_by_three()));
  EXPECT_EQ(two.columns.size(), 4);
  EXPECT_EQ(two.rows[0], (std::vector<std::string>{"solution rank (SR)", "49 ± 0", "11.0 ± 2.5",
                                                   "−38.0 ± 2.5"}));
  const auto one = comparison_table(compare({run_with_rank(5, 0, 3)}));
  EXPECT_EQ(one.columns.size(), 2);
  EXPECT_EQ(one.columns[1].name, "temperature 5");
  EXPECT_EQ(one.rows[0][1], "3");
}

TEST(ComparisonTable, MarksTheWidthBoundAndExplainsIt) {
  auto run = run_with_rank(1, 0, 16);
  run.readings[0].definition["upper_bound"] = 16;
  run.readings[0].definition["bound_by_width"] = true;
  const auto comparison = compare({run});
  EXPECT_EQ(comparison_table(comparison).rows[0][1], "16†");
  EXPECT_TRUE(comparison_notes(comparison).back().starts_with("†"));
}

TEST(ComparisonTable, ShowsTheRankAtEqualAccuracyAndSaysWhich) {
  auto low = bare_run(1, 0);
  auto high = bare_run(100, 0);
  add_metrics(low, {{0.5, 30}, {0.9, 40}});
  add_metrics(high, {{0.4, 4}, {0.5, 5}});
  const auto comparison = compare({low, high});
  EXPECT_EQ(comparison_table(comparison).rows[0],
            (std::vector<std::string>{"SR at equal training accuracy", "30", "5", "−25"}));
  const auto notes = comparison_notes(comparison);
  EXPECT_NE(notes.back().find("50.0 %"), std::string::npos);
}

TEST(ComparisonTable, OfOneGroupHasNoRankAtEqualAccuracy) {
  auto run = run_with_rank(1, 0, 9);
  add_metrics(run, {{0.5, 30}});
  const auto comparison = compare({run});
  EXPECT_FALSE(comparison.equal_accuracy);
  EXPECT_EQ(comparison_table(comparison).rows.size(), 1);
}

TEST(ComparisonRecords, HoldEveryNumberAtFullPrecision) {
  auto run = run_with_rank(1, 0, 1.0 / 3);
  const auto rows = nlohmann::json::parse(json_of(comparison_records(compare({run}))));
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0]["mean"].get<double>(), 1.0 / 3);
  EXPECT_EQ(rows[0]["seeds"], 1);
  EXPECT_TRUE(rows[0]["half_width"].is_null());
}

TEST(MeanText, ShowsFractionsAsPercentAndSingleValuesWithoutAnInterval) {
  EXPECT_EQ(mean_text({.count = 1, .mean = 0.7125}, {.name = "kappa"}), "71.2 %");
  EXPECT_EQ(mean_text({.count = 3, .mean = 0.5, .half_width = 0.02}, {.name = "kappa"}),
            "50.0 ± 2.0 %");
  EXPECT_EQ(mean_text({.count = 3, .mean = 123.4, .half_width = 17}, {.name = "logits_norm"}),
            "123 ± 17");
  EXPECT_EQ(mean_text({}, {.name = "kappa"}), "–");
}

}  // namespace kelvin::comparison_test
