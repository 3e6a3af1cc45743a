#include "kelvin/report/tables/collapse_steps.h"

#include <gtest/gtest.h>

#include "kelvin/report/page/figure_files.h"
#include "tests/report/report_runs.h"

namespace kelvin::collapse_steps_test {

// Rank 9 at the initialisation, then (training accuracy, rank) at steps 10, 20, ...
Run run_of(const std::vector<std::pair<double, double>>& epochs, double temperature = 100) {
  auto run = bare_run(temperature, 0);
  add_metrics(run, epochs);
  return run;
}

TEST(CollapseSteps, FindsWhereTheRankHasComeDownAndAllSamplesAreRight) {
  const auto steps = collapse_steps(run_of({{0.5, 8}, {0.6, 5}, {0.9, 4}, {1, 4}, {1, 4}}));
  EXPECT_EQ(steps.rank_settled, 20);
  EXPECT_EQ(steps.fitted, 40);
  EXPECT_EQ(steps.last, 50);
  EXPECT_EQ(steps.rank_at_fit, 4);
  EXPECT_EQ(steps.rank_at_end, 4);
  EXPECT_EQ(
      collapse_text(steps),
      "rank within one of its last from step 20 on, all sampled training images right at step 40");
}

TEST(CollapseSteps, CountsOnlyWhatLasts) {
  EXPECT_EQ(collapse_steps(run_of({{0.5, 4}, {0.6, 6}, {0.9, 5}, {0.9, 4}})).rank_settled, 30);
  // What fell below its last value had not settled either.
  EXPECT_EQ(collapse_steps(run_of({{0.5, 1}, {0.6, 2}, {0.9, 3}, {0.9, 4}})).rank_settled, 30);
  EXPECT_EQ(collapse_steps(run_of({{0.5, 8}, {0.9, 2}})).rank_settled, 20);
  // Samples that were all right once were so at that step.
  EXPECT_EQ(collapse_steps(run_of({{1, 8}, {0.9, 2}})).fitted, 10);
}

TEST(CollapseSteps, FindsNothingWhereNothingCameDown) {
  const auto steps = collapse_steps(run_of({{0.5, 9}, {0.999, 8}}));
  EXPECT_FALSE(steps.rank_settled);
  EXPECT_FALSE(steps.fitted);
  EXPECT_EQ(collapse_text(steps), "");
  EXPECT_FALSE(collapse_steps(run_of({{0.5, 3}, {0.9, 9}})).rank_settled);
  EXPECT_FALSE(collapse_steps(run_of({{0.5, 3}, {0.9, 20}})).rank_settled);
}

TEST(CollapseSteps, SayWhenAllSamplesAreRightEvenIfNothingCameDown) {
  auto run = run_of({{0.5, 9}, {1, 8}});
  EXPECT_EQ(
      collapse_text(collapse_steps(run)),
      "rank never more than one above its last, all sampled training images right at step 20");
  for (auto& line : run.metrics) line.erase("solution_rank");
  EXPECT_EQ(collapse_text(collapse_steps(run)), "all sampled training images right at step 20");
}

TEST(CollapseSteps, SaysIfTrainingSamplesWereNeverAllRight) {
  EXPECT_EQ(collapse_text(collapse_steps(run_of({{0.5, 4}, {0.99, 4}}))),
            "rank within one of its last from step 10 on, never all sampled training images right");
}

TEST(CollapseSteps, TakesRunsWithoutMetricsAndLinesWithoutRanks) {
  EXPECT_FALSE(collapse_steps(bare_run(1, 0)).rank_settled);
  EXPECT_FALSE(collapse_steps(bare_run(1, 0)).fitted);
  auto run = run_of({{0.5, 4}, {1, 4}});
  run.metrics.push_back({{"step", 30}, {"train_accuracy", nullptr}, {"solution_rank", nullptr}});
  run.metrics.push_back({{"train_accuracy", 1}, {"solution_rank", 9}});
  EXPECT_EQ(collapse_steps(run).rank_settled, 10);
  EXPECT_EQ(collapse_steps(run).fitted, 20);
}

TEST(CollapseSteps, SayHowManyTrainingImagesWereLookedAt) {
  auto run = run_of({{0.5, 4}, {1, 4}});
  run.config.set("measure.epoch_samples", 1000);
  run.config.set("data.train_samples", 0);  // all there are
  const std::string settled = "rank within one of its last from step 10 on, ";
  EXPECT_EQ(collapse_text(collapse_steps(run)),
            settled + "all 1000 sampled training images right at step 20");
  run.config.set("data.train_samples", 400);
  EXPECT_EQ(collapse_text(collapse_steps(run)),
            settled + "all 400 sampled training images right at step 20");
}

TEST(CollapseTable, HasARowPerRunAndEmptyCellsForWhatNeverHappened) {
  auto both = run_of({{0.5, 5}, {0.9, 4}, {1, 4.5}, {1, 4}}, 100);
  both.config.set("measure.epoch_samples", 1000);
  const auto never_fell = run_of({{0.5, 9}, {1, 9}}, 1);
  const auto never_fitted = run_of({{0.5, 3}, {0.999, 3}}, 10);
  const auto table = collapse_table({both, never_fell, never_fitted, bare_run(2, 0)});
  EXPECT_EQ(csv_of(table),
            "run,steps,fitted_step,collapse_step,rank_at_fit,rank_at_end,sampled_images\n"
            "runs/t100s0,40,30,10,4.5,4,1000\n"
            "runs/t1s0,20,20,,9,9,\n"
            "runs/t10s0,20,,10,,3,\n"
            "runs/t2s0,,,,,,\n");
}

TEST(CollapseTable, LeavesRanksOutThatWereNotMeasured) {
  auto run = run_of({{1, 9}}, 1);
  for (auto& line : run.metrics) line.erase("solution_rank");
  EXPECT_EQ(collapse_table({run}).rows.at(0),
            (std::vector<std::string>{"runs/t1s0", "10", "10", "", "", "", ""}));
}

TEST(CollapseTable, IsAmongTheCsvsOfAReport) {
  const Runs runs = {run_of({{0.5, 5}, {1, 4}}, 1)};
  EXPECT_EQ(figure_csvs({.runs = runs}).at("fit-and-collapse"), csv_of(collapse_table(runs)));
}

}  // namespace kelvin::collapse_steps_test
