#include <gtest/gtest.h>

#include <algorithm>

#include "kelvin/report/figures/figures.h"
#include "kelvin/report/page/figure_files.h"
#include "tests/report/report_runs.h"
#include "tests/support/errors.h"

namespace kelvin::start_figures_test {

// A run of some rank whose logits begin with that norm over T.
Run run_from(double norm, double temperature, int64_t seed, double rank) {
  auto run = run_with_rank(temperature, seed, rank);
  run.metrics.push_back({{"step", 0}, {"epoch", 0}, {"logits_norm_over_t", norm}});
  run.metrics.push_back({{"step", 10}, {"epoch", 1}, {"logits_norm_over_t", 1000.0}});
  return run;
}

std::vector<RunFigure> start_figures(const Runs& runs, const std::vector<std::string>& cases = {}) {
  auto figures = run_figures(runs, compare(runs), cases);
  std::erase_if(figures, [](const RunFigure& figure) {
    return figure.section != "Over the logits norm at the start";
  });
  return figures;
}

TEST(StartFigures, PutRunsOfAllCasesIntoOneFigureWithAColourEach) {
  const Runs runs = {run_from(8, 1, 1, 99), run_from(9, 1, 2, 98), run_from(0.3, 30, 1, 50),
                     run_from(0.2, 1, 3, 49)};
  const auto figures = start_figures(runs, {"temperature", "temperature", "temperature", "width"});
  ASSERT_EQ(figures.size(), 1U);
  EXPECT_EQ(figures[0].name, "solution-rank-over-start-norm");
  const auto& figure = std::get<LineFigure>(figures[0].figure);
  EXPECT_TRUE(figure.x.is_log);
  ASSERT_EQ(figure.series.size(), 2U);
  EXPECT_EQ(figure.series[0].label, "temperature");
  EXPECT_EQ(figure.series[1].label, "width");
  EXPECT_NE(figure.series[0].colour, figure.series[1].colour);
  ASSERT_EQ(figure.series[0].points.size(), 3U);
  ASSERT_EQ(figure.series[1].points.size(), 1U);
  EXPECT_EQ(figure.series[1].stroke, Stroke::points_alone);
  EXPECT_EQ(figure.series[1].points[0].x, 0.2);  // that of step 0, not the last one
  EXPECT_EQ(figure.series[1].points[0].y, 49);
  EXPECT_EQ(figure.series[1].points[0].name, "T = 1, seed 3");
}

TEST(StartFigures, AreThereOnlyIfTheNormsDifferByMoreThanAFactorOfTwo) {
  EXPECT_TRUE(start_figures({run_from(2, 1, 1, 99), run_from(4, 1, 2, 50)}).empty());
  EXPECT_EQ(start_figures({run_from(2, 1, 1, 99), run_from(4.1, 1, 2, 50)}).size(), 1U);
  EXPECT_TRUE(start_figures({run_with_rank(1, 1, 99), run_with_rank(30, 1, 50)}).empty());
  // A norm of zero has no place on a logarithmic axis.
  EXPECT_TRUE(start_figures({run_from(0, 1, 1, 99), run_from(4, 1, 2, 50)}).empty());
}

TEST(StartFigures, ShowDepthDropAndDetectionOfTheSameData) {
  Runs runs = {run_from(8, 1, 1, 99), run_from(0.3, 30, 1, 50)};
  for (auto& run : runs) {
    run.readings.push_back({.name = "kappa", .value = 0.8});
    run.readings.push_back({.name = "rho", .value = 0.4, .ood = "svhn"});
    for (const char* ood : {"cifar10", "svhn"}) {
      run.readings.push_back({.name = "auroc",
                              .value = ood == std::string("svhn") ? 0.9 : 0.1,
                              .split = "test",
                              .detector = "neco",
                              .ood = ood});
    }
  }
  const auto figures = start_figures(runs);
  ASSERT_EQ(figures.size(), 4U);
  EXPECT_EQ(figures[1].name, "kappa-over-start-norm");
  EXPECT_EQ(figures[2].name, "rho-over-start-norm");
  const auto& auroc = std::get<LineFigure>(figures[3].figure);
  EXPECT_EQ(auroc.series.at(0).points.at(0).y, 0.9);
  EXPECT_TRUE(auroc.y.is_percent);
}

TEST(StartFigures, HaveATableWithARowPerRun) {
  const PageInput input{.runs = {run_from(8, 1, 1, 99), run_from(0.5, 30, 1, 50)},
                        .cases = {"one", "other"}};
  const auto csv = figure_csvs(input).at("solution-rank-over-start-norm");
  EXPECT_EQ(csv,
            "series,detail,point,logits norm ‖M/T‖ at step 0,solution rank (SR),low,high\n"
            "one,,\"T = 1, seed 1\",8,99,,\n"
            "other,,\"T = 30, seed 1\",0.5,50,,\n");
}

TEST(StartFigures, RejectCasesThatAreNotOneForEachRun) {
  const Runs runs = {run_from(8, 1, 1, 99), run_from(0.5, 30, 1, 50)};
  EXPECT_EQ(error_of([&] { run_figures(runs, compare(runs), {"one"}); }),
            "figures: must have a case for each of the 2 runs or none, got 1");
}

}  // namespace kelvin::start_figures_test
