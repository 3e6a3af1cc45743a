#include "kelvin/report/collapse_table.h"

#include <gtest/gtest.h>

#include "kelvin/report/csv.h"
#include "tests/report/report_runs.h"

namespace kelvin {
namespace {

// Rank 9 at the initialisation, then (training accuracy, rank) at steps 10, 20, ...
Run run_of(double temperature, const std::vector<std::pair<double, double>>& epochs) {
  auto run = bare_run(temperature, 0);
  add_metrics(run, epochs);
  return run;
}

TEST(CollapseTable, HasARowPerRunAndEmptyCellsForWhatNeverHappened) {
  auto both = run_of(100, {{0.5, 5}, {0.9, 4}, {1, 4.5}, {1, 4}});
  both.config.set("measure.epoch_samples", 1000);
  const auto never_fell = run_of(1, {{0.5, 9}, {1, 9}});
  const auto never_fitted = run_of(10, {{0.5, 3}, {0.999, 3}});
  const auto table = collapse_table({both, never_fell, never_fitted, bare_run(2, 0)});
  EXPECT_EQ(csv_of(table),
            "run,steps,fitted_step,collapse_step,rank_at_fit,rank_at_end,sampled_images\n"
            "runs/t100s0,40,30,10,4.5,4,1000\n"
            "runs/t1s0,20,20,,9,9,\n"
            "runs/t10s0,20,,10,,3,\n"
            "runs/t2s0,,,,,,\n");
}

TEST(CollapseTable, LeavesRanksOutThatWereNotMeasured) {
  auto run = run_of(1, {{1, 9}});
  for (auto& line : run.metrics) line.erase("solution_rank");
  EXPECT_EQ(collapse_table({run}).rows.at(0),
            (std::vector<std::string>{"runs/t1s0", "10", "10", "", "", "", ""}));
}

TEST(CollapseTable, IsAmongTheCsvsOfAReport) {
  const Runs runs = {run_of(1, {{0.5, 5}, {1, 4}})};
  EXPECT_EQ(figure_csvs({.runs = runs}).at("fit-and-collapse"), csv_of(collapse_table(runs)));
}

}  // namespace
}  // namespace kelvin
