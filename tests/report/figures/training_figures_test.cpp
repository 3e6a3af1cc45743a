#include <gtest/gtest.h>

#include <algorithm>

#include "kelvin/report/figures/figures.h"
#include "tests/report/report_runs.h"

namespace kelvin::training_figures_test {

std::vector<RunFigure> figures_of(const Runs& runs) { return run_figures(runs, compare(runs)); }

const LineFigure* find_lines(const std::vector<RunFigure>& figures, const std::string& name) {
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [&](const RunFigure& figure) { return figure.name == name; });
  return found == figures.end() ? nullptr : &std::get<LineFigure>(found->figure);
}

TEST(TrainingFigures, AverageOverSeedsAndBandTheirRange) {
  auto one = bare_run(1, 0);
  auto other = bare_run(1, 1);
  add_metrics(one, {{0.5, 10}});
  add_metrics(other, {{0.7, 20}});
  const auto figures = figures_of({one, other});
  const auto* ranks = find_lines(figures, "rank-over-training");
  ASSERT_NE(ranks, nullptr);
  const auto& last = ranks->series[0].points.back();
  EXPECT_EQ(last.y, 15);
  EXPECT_EQ(last.low, 10);
  EXPECT_EQ(last.high, 20);
}

TEST(TrainingFigures, DrawRankAgainstAccuracyPerRunWithoutTheInitialisation) {
  auto one = bare_run(1, 0);
  auto other = bare_run(100, 1);
  add_metrics(one, {{0.5, 10}, {0.6, 11}});
  add_metrics(other, {{0.7, 20}});
  const auto figures = figures_of({one, other});
  const auto* ranks = find_lines(figures, "rank-against-accuracy");
  ASSERT_EQ(ranks->series.size(), 2);
  EXPECT_EQ(ranks->series[0].points.size(), 2);
  EXPECT_EQ(ranks->series[1].detail, "seed 1");
  EXPECT_EQ(ranks->guides[0].value, 0.6);
}

}  // namespace kelvin::training_figures_test
