#include <gtest/gtest.h>

#include <algorithm>

#include "kelvin/report/figures/figures.h"
#include "tests/report/report_runs.h"

namespace kelvin::temperature_figures_test {

std::vector<RunFigure> figures_of(const Runs& runs) { return run_figures(runs, compare(runs)); }

const LineFigure* find_lines(const std::vector<RunFigure>& figures, const std::string& name) {
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [&](const RunFigure& figure) { return figure.name == name; });
  return found == figures.end() ? nullptr : &std::get<LineFigure>(found->figure);
}

TEST(TemperatureFigures, ShowTheTradeOffOverThreeTemperatures) {
  const Runs two = {run_with_rank(1, 0, 9), run_with_rank(10, 0, 8)};
  EXPECT_EQ(find_lines(figures_of(two), "rank-over-temperature"), nullptr);
  auto three = two;
  three.push_back(run_with_rank(100, 0, 3));
  const auto figures = figures_of(three);
  const auto* ranks = find_lines(figures, "rank-over-temperature");
  ASSERT_NE(ranks, nullptr);
  EXPECT_EQ(ranks->series[0].points[2].x, 100);
  EXPECT_EQ(ranks->series[0].points[2].y, 3);
}

TEST(TemperatureFigures, ShowDetectionAndGeneralisationOfTheSameData) {
  Runs runs;
  for (const double temperature : {1.0, 10.0, 100.0}) {
    auto run = run_with_rank(temperature, 0, 9);
    for (const char* ood : {"cifar100", "svhn"}) {
      for (const char* detector : {"ash_b", "neco"}) {
        run.readings.push_back({.name = "auroc",
                                .value = detector == std::string("neco") ? 0.9 : 0.1,
                                .split = "test",
                                .detector = detector,
                                .ood = ood});
      }
    }
    run.readings.push_back({.name = "rho", .value = 0.5, .ood = "svhn"});
    runs.push_back(run);
  }
  const auto figures = figures_of(runs);
  const auto* shares = find_lines(figures, "trade-off");
  ASSERT_NE(shares, nullptr);
  ASSERT_EQ(shares->series.size(), 2U);
  EXPECT_EQ(shares->series[0].label, "ρ, svhn");
  EXPECT_EQ(shares->series[1].label, "AUROC neco, svhn");
  EXPECT_EQ(shares->series[1].points[0].y, 0.9);
}

}  // namespace kelvin::temperature_figures_test
