#include "kelvin/report/layer_figures.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/report/report_runs.h"

namespace kelvin {
namespace {

const LineFigure* find_lines(const std::vector<RunFigure>& figures, const std::string& name) {
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [&](const RunFigure& figure) { return figure.name == name; });
  return found == figures.end() ? nullptr : &std::get<LineFigure>(found->figure);
}

std::vector<RunFigure> figures_of(const Runs& runs) {
  const auto comparison = compare(runs);
  std::vector<RunFigure> figures;
  add_layer_figures({.runs = runs, .comparison = comparison}, figures);
  return figures;
}

void add_reading(Run& run, const std::string& name, const std::string& layer, double value,
                 double gamma = 1e-3) {
  run.readings.push_back({.name = name,
                          .value = value,
                          .layer = layer,
                          .split = "test",
                          .definition = {{"gamma", gamma}, {"features", 7}}});
}

TEST(LayerFigures, DrawTheDefaultRankOfEachLayerInOrder) {
  auto run = bare_run(1, 0);
  add_reading(run, "covariance_rank", "conv", 90);
  add_reading(run, "covariance_rank", "conv", 300, 1e-4);
  add_reading(run, "covariance_rank", "fc", 9);
  const auto figures = figures_of({run});
  const auto* ranks = find_lines(figures, "layer-ranks");
  ASSERT_NE(ranks, nullptr);
  EXPECT_EQ(ranks->x.names, (std::vector<std::string>{"conv", "fc"}));
  ASSERT_EQ(ranks->series.size(), 1U);
  ASSERT_EQ(ranks->series[0].points.size(), 2U);
  EXPECT_EQ(ranks->series[0].points[0].y, 90);
  EXPECT_EQ(ranks->series[0].points[1].y, 9);
  EXPECT_EQ(figures[0].definition, "gamma 0.001");
}

TEST(LayerFigures, LeaveZerosOutOfLogarithms) {
  auto run = bare_run(1, 0);
  add_reading(run, "covariance_rank", "dead", 0);
  add_reading(run, "covariance_rank", "fc", 9);
  const auto figures = figures_of({run});
  const auto* ranks = find_lines(figures, "layer-ranks");
  ASSERT_NE(ranks, nullptr);
  EXPECT_EQ(ranks->series[0].points.size(), 1U);
}

TEST(LayerFigures, DrawGradientsBesideTheirInputs) {
  auto run = bare_run(1, 0);
  add_reading(run, "gradient_rank", "fc", 3);
  add_reading(run, "activation_rank", "fc", 8);
  const auto figures = figures_of({run});
  const auto* ranks = find_lines(figures, "gradient-ranks");
  ASSERT_NE(ranks, nullptr);
  ASSERT_EQ(ranks->series.size(), 2U);
  EXPECT_EQ(ranks->series[1].stroke, Stroke::dashed);
  EXPECT_EQ(ranks->series[1].points[0].y, 8);
}

TEST(LayerFigures, OfRunsWithoutLayersAreNone) {
  EXPECT_TRUE(figures_of({bare_run(1, 0)}).empty());
}

}  // namespace
}  // namespace kelvin
