#include "kelvin/report/figures/figures.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/report/report_runs.h"

namespace kelvin::figures_test {

std::vector<RunFigure> figures_of(const Runs& runs) { return run_figures(runs, compare(runs)); }

TEST(RunFigures, OfARunWithoutResultsAreNone) { EXPECT_TRUE(figures_of({bare_run(1, 0)}).empty()); }

TEST(RunFigures, HaveUniqueNames) {
  auto run = bare_run(1, 0);
  run.scores = {{.detector = "a", .ood = "b c", .id_scores = {1}, .ood_scores = {2}},
                {.detector = "a b", .ood = "c", .id_scores = {1}, .ood_scores = {2}}};
  std::set<std::string> names;
  for (const auto& figure : figures_of({run})) EXPECT_TRUE(names.insert(figure.name).second);
  EXPECT_EQ(names.size(), 4);  // scores and ROC of each
}

TEST(FigureInput, AveragesTheRunsOfAPoint) {
  const auto points = mean_points({{1, {2, 4}}, {3, {5}}});
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].y, 3);
  EXPECT_EQ(points[0].low, 2);
  EXPECT_EQ(points[0].high, 4);
  EXPECT_EQ(points[1].x, 3);
}

TEST(FigureInput, SpeaksOfSeedsOnlyIfThereAreSeveral) {
  const Runs one = {bare_run(1, 0)};
  const Runs two = {bare_run(1, 0), bare_run(1, 1)};
  const auto alone = compare(one);
  const auto both = compare(two);
  EXPECT_EQ(seed_note({.runs = one, .comparison = alone}), "");
  EXPECT_NE(seed_note({.runs = two, .comparison = both}), "");
}

TEST(FigureInput, GivesFiguresNamesOfTheirOwnAndLeavesOutEmptyOnes) {
  std::vector<RunFigure> figures;
  const RunFigure figure{.name = "a",
                         .section = "",
                         .figure = LineFigure{.series = {{.label = "x", .points = {{1, 2}}}}},
                         .how_to_read = "so",
                         .definition = ""};
  add_figure(figures, figure);
  add_figure(figures, figure);
  add_figure(
      figures,
      {.name = "b", .section = "", .figure = LineFigure{}, .how_to_read = "", .definition = ""});
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[1].name, "a-2");
  EXPECT_EQ(std::get<LineFigure>(figures[0].figure).description, "so");
}

TEST(FigureInput, FindsTheDefinitionOfTheFirstReadingThatFits) {
  auto run = bare_run(1, 0);
  run.readings.push_back({.name = "rank", .value = 1, .definition = {{"gamma", 0.5}}});
  const Runs runs = {run};
  const auto comparison = compare(runs);
  const FigureInput in{.runs = runs, .comparison = comparison};
  EXPECT_EQ(definition_of(in, named("rank")), "gamma 0.5");
  EXPECT_EQ(definition_of(in, named("rank"), {"gamma"}), "");
  EXPECT_EQ(definition_of(in, named("norm")), "");
}

}  // namespace kelvin::figures_test
