#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "kelvin/report/figures/figures.h"
#include "tests/report/report_runs.h"

namespace kelvin::layer_figures_test {

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

// A run whose probes got these shares right, layer by layer, and the kappa that is recorded with
// the default threshold or another one.
Run run_with_probes(double temperature, const std::vector<double>& accuracies,
                    std::optional<double> threshold) {
  auto run = bare_run(temperature, 0);
  for (size_t i = 0; i < accuracies.size(); ++i) {
    add_reading(run, "probe_accuracy", "fc" + std::to_string(i), accuracies[i]);
  }
  if (threshold) {
    run.readings.push_back({.name = "kappa",
                            .value = 0.5,
                            .definition = {{"threshold", *threshold}, {"last_layer", "logits"}}});
  }
  run.readings.push_back({.name = "kappa",
                          .value = 0.5,
                          .definition = {{"threshold", 0.5}, {"last_layer", "penultimate"}}});
  return run;
}

TEST(LayerFigures, RingTheLayerThatKappaCounts) {
  const std::vector<double> accuracies = {0.1, 0.77, 0.795, 0.8};
  for (const auto& [threshold, place] : std::map<double, double>{{0.95, 1}, {0.99, 2}, {1, 3}}) {
    const auto figures = figures_of({run_with_probes(1, accuracies, threshold)});
    const auto* probes = find_lines(figures, "probes");
    ASSERT_NE(probes, nullptr);
    ASSERT_EQ(probes->marks.size(), 1U);
    EXPECT_EQ(probes->marks[0].label, "κ");
    EXPECT_EQ(probes->marks[0].x, place) << threshold;
  }
  const auto figures = figures_of({run_with_probes(1, accuracies, 0.95)});
  EXPECT_NE(figures[0].how_to_read.find("the first layer that reaches 95 % of the last one"),
            std::string::npos)
      << figures[0].how_to_read;
}

TEST(LayerFigures, RingNothingWhereThereIsNoKappa) {
  const auto figures = figures_of({run_with_probes(1, {0.5, 0.5, 0}, {})});
  const auto* probes = find_lines(figures, "probes");
  ASSERT_NE(probes, nullptr);
  EXPECT_EQ(probes->series.size(), 1U);
  EXPECT_TRUE(probes->marks.empty());
  EXPECT_EQ(figures[0].how_to_read.find("ring"), std::string::npos) << figures[0].how_to_read;
}

TEST(LayerFigures, RingEachGroupByItsOwnThreshold) {
  const std::vector<double> accuracies = {0.1, 0.77, 0.795, 0.8};
  const auto figures =
      figures_of({run_with_probes(1, accuracies, 0.95), run_with_probes(2, accuracies, 0.99),
                  run_with_probes(3, {0.5, 0.5, 0.5, 0}, {})});
  const auto* probes = find_lines(figures, "probes");
  ASSERT_NE(probes, nullptr);
  EXPECT_EQ(probes->series.size(), 3U);
  ASSERT_EQ(probes->marks.size(), 2U);
  EXPECT_EQ(probes->marks[0].x, 1);
  EXPECT_EQ(probes->marks[1].x, 2);
  EXPECT_NE(figures[0].how_to_read.find("the share that its definition names"), std::string::npos);
}

TEST(LayerFigures, OfRunsWithoutLayersAreNone) {
  EXPECT_TRUE(figures_of({bare_run(1, 0)}).empty());
}

TEST(LayerFigures, ScaleTheSpectrumToItsFirstValueAndDropRounding) {
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

TEST(LayerFigures, MarkTheFirstLayerAsGoodAsTheLast) {
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

}  // namespace kelvin::layer_figures_test
