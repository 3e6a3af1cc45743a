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

TEST(TrainingFigures, ShowHowWellViewsAreToldWhereNoClassesAre) {
  auto run = bare_run(1, 0);
  for (const double share : {0.1, 0.6}) {
    run.metrics.push_back({{"step", 0},
                           {"epoch", run.metrics.size()},
                           {"loss", 3.0},
                           {"train_view_accuracy", share},
                           {"test_view_accuracy", share / 2}});
  }
  const auto figures = figures_of({run});
  const auto* told = find_lines(figures, "view-accuracy");
  ASSERT_NE(told, nullptr);
  ASSERT_EQ(told->series.size(), 2);
  EXPECT_EQ(told->series[0].points.back().y, 0.6);
  EXPECT_EQ(told->series[1].points.back().y, 0.3);
  EXPECT_EQ(find_lines(figures, "accuracy"), nullptr);
  const auto loss = std::find_if(figures.begin(), figures.end(),
                                 [](const RunFigure& figure) { return figure.name == "loss"; });
  ASSERT_NE(loss, figures.end());
  EXPECT_NE(loss->how_to_read.find("other view"), std::string::npos);
  auto classifier = bare_run(1, 0);
  add_metrics(classifier, {{0.5, 10}});
  EXPECT_EQ(find_lines(figures_of({classifier}), "view-accuracy"), nullptr);
}

}  // namespace kelvin::training_figures_test
