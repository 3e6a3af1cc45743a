#include "kelvin/report/figures/run_figures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/report/report_runs.h"

namespace kelvin::run_figures_test {

std::vector<RunFigure> figures_of(const Runs& runs) { return run_figures(runs, compare(runs)); }

const LineFigure* find_lines(const std::vector<RunFigure>& figures, const std::string& name) {
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [&](const RunFigure& figure) { return figure.name == name; });
  return found == figures.end() ? nullptr : &std::get<LineFigure>(found->figure);
}

TEST(RunFigures, OfARunWithoutResultsAreNone) { EXPECT_TRUE(figures_of({bare_run(1, 0)}).empty()); }

TEST(RunFigures, AverageOverSeedsAndBandTheirRange) {
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

TEST(RunFigures, DrawRankAgainstAccuracyPerRunWithoutTheInitialisation) {
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

TEST(RunFigures, ScaleTheSpectrumToItsFirstValueAndDropRounding) {
  auto run = bare_run(1, 0);
  for (const auto& [index, value] :
       std::vector<std::pair<int64_t, double>>{{1, 2}, {0, 8}, {2, 1e-13}}) {
    run.readings.push_back({.name = "singular_value",
                            .value = value,
                            .index = index,
                            .definition = {{"shift_free", true}}});
  }
  const auto figures = figures_of({run});
  const auto& points = find_lines(figures, "spectrum")->series[0].points;
  ASSERT_EQ(points.size(), 2);
  EXPECT_EQ(points[0].y, 1);
  EXPECT_EQ(points[1].y, 0.25);
}

TEST(RunFigures, MarkTheFirstLayerAsGoodAsTheLast) {
  auto run = bare_run(1, 0);
  for (const auto& [layer, value] :
       std::vector<std::pair<std::string, double>>{{"a", 0.5}, {"b", 0.895}, {"c", 0.9}}) {
    run.readings.push_back(
        {.name = "probe_accuracy", .value = value, .layer = layer, .split = "test"});
    run.readings.push_back({.name = "probe_accuracy",
                            .value = value / 2,
                            .layer = layer,
                            .split = "test",
                            .ood = "svhn"});
  }
  run.readings.push_back({.name = "kappa", .value = 2. / 3, .definition = {{"threshold", 0.99}}});
  const auto figures = figures_of({run});
  const auto* probes = find_lines(figures, "probes-svhn");
  ASSERT_NE(probes, nullptr);
  EXPECT_EQ(probes->x.names, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(probes->marks[0].x, 1);
  EXPECT_EQ(probes->series[1].points[2].y, 0.45);
}

TEST(RunFigures, HaveUniqueNames) {
  auto run = bare_run(1, 0);
  run.scores = {{.detector = "a", .ood = "b c", .id_scores = {1}, .ood_scores = {2}},
                {.detector = "a b", .ood = "c", .id_scores = {1}, .ood_scores = {2}}};
  std::set<std::string> names;
  for (const auto& figure : figures_of({run})) EXPECT_TRUE(names.insert(figure.name).second);
  EXPECT_EQ(names.size(), 4);  // scores and ROC of each
}

TEST(RunFigures, ShowTheTradeOffOverThreeTemperatures) {
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

TEST(RunFigures, ShowDetectionAndGeneralisationOfTheSameData) {
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

}  // namespace kelvin::run_figures_test
