#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "kelvin/report/figures/figures.h"
#include "tests/report/report_runs.h"

namespace kelvin::trajectory_figures_test {

std::vector<RunFigure> figures_of(const Runs& runs) {
  const auto comparison = compare(runs);
  std::vector<RunFigure> figures;
  add_trajectory_figures({.runs = runs, .comparison = comparison}, figures);
  return figures;
}

// Of the first group.
std::vector<PlotPoint> points_of(const std::vector<RunFigure>& figures, const std::string& name) {
  for (const auto& figure : figures) {
    if (figure.name == name) return std::get<LineFigure>(figure.figure).series.at(0).points;
  }
  ADD_FAILURE() << "no figure " << name;
  return {};
}

std::vector<std::string> names_of(const std::vector<RunFigure>& figures) {
  std::vector<std::string> names;
  for (const auto& figure : figures) names.push_back(figure.name);
  return names;
}

Reading of_network(const std::string& name, double value) {
  return {.name = name, .value = value, .split = "test"};
}

Reading of_layer(const std::string& name, const std::string& layer, double value) {
  return {.name = name, .value = value, .layer = layer, .split = "test"};
}

Reading orthodev(const std::string& ood, double value) {
  return {.name = "orthodev", .value = value, .split = "train", .ood = ood};
}

TEST(TrajectoryFigures, OfRunsWithoutATrajectoryAreNone) {
  EXPECT_TRUE(figures_of({bare_run(1, 0)}).empty());
}

TEST(TrajectoryFigures, DrawWhatThereIsAfterTheInitialisation) {
  auto run = bare_run(1, 0);
  add_snapshot(run, 0, {of_network("alignment", 0.1), of_network("top_singular_share", 0.5)});
  add_snapshot(run, 1, {of_network("alignment", 0.25), of_layer("alignment", "fc", 0.75)});
  add_snapshot(run, 10, {of_network("alignment", 0.5)});
  const auto figures = figures_of({run});
  EXPECT_EQ(names_of(figures), std::vector<std::string>{"alignment-over-steps"});
  EXPECT_EQ(figures.at(0).section, "Over training");
  EXPECT_NE(figures.at(0).how_to_read.find("Step 0"), std::string::npos);
  const auto& figure = std::get<LineFigure>(figures.at(0).figure);
  EXPECT_TRUE(figure.x.is_log);
  EXPECT_EQ(figure.x.label, "training step");
  const auto& points = figure.series.at(0).points;
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].x, 1);
  EXPECT_EQ(points[0].y, 0.25);
  EXPECT_EQ(points[1].x, 10);
  EXPECT_EQ(points[1].y, 0.5);
}

TEST(TrajectoryFigures, AverageOverSeedsAndBandTheirRange) {
  auto one = bare_run(1, 0);
  auto other = bare_run(1, 1);
  auto hot = bare_run(100, 0);
  add_snapshot(one, 5, {of_network("alignment", 0.25)});
  add_snapshot(other, 5, {of_network("alignment", 0.75)});
  add_snapshot(hot, 5, {of_network("alignment", 1)});
  const auto figures = figures_of({one, other, hot});
  const auto& figure = std::get<LineFigure>(figures.at(0).figure);
  ASSERT_EQ(figure.series.size(), 2U);
  const auto& point = figure.series[0].points.at(0);
  EXPECT_EQ(point.y, 0.5);
  EXPECT_EQ(point.low, 0.25);
  EXPECT_EQ(point.high, 0.75);
  EXPECT_EQ(figure.series[1].points.at(0).y, 1);
  EXPECT_NE(figures[0].how_to_read.find("means over the seeds"), std::string::npos);
}

TEST(TrajectoryFigures, AverageOverLayersWhatOnlyLayersHave) {
  for (const auto& [reading, figure] : std::vector<std::pair<std::string, std::string>>{
           {"covariance_rank", "layer-ranks-over-steps"},
           {"gradient_rank", "gradient-ranks-over-steps"},
           {"activation_rank", "input-ranks-over-steps"},
           {"norm_alignment", "norm-alignment-over-steps"}}) {
    auto run = bare_run(1, 0);
    add_snapshot(run, 3,
                 {of_layer(reading, "conv", 30), of_layer(reading, "fc", 10),
                  of_layer(reading, "dead", std::numeric_limits<double>::quiet_NaN())});
    const auto figures = figures_of({run});
    EXPECT_EQ(names_of(figures), std::vector<std::string>{figure});
    EXPECT_EQ(points_of(figures, figure).at(0).y, 20);
    EXPECT_TRUE(std::get<LineFigure>(figures.at(0).figure).title.ends_with("mean over layers"));
  }
}

TEST(TrajectoryFigures, HaveOneOfOrthodevForEachOodDataset) {
  auto run = bare_run(1, 0);
  add_snapshot(run, 2, {orthodev("svhn", 0.5), orthodev("textures", 0.25)});
  const auto figures = figures_of({run});
  EXPECT_EQ(names_of(figures),
            (std::vector<std::string>{"orthodev-over-steps-svhn", "orthodev-over-steps-textures"}));
  EXPECT_EQ(points_of(figures, "orthodev-over-steps-svhn").at(0).y, 0.5);
  EXPECT_EQ(points_of(figures, "orthodev-over-steps-textures").at(0).y, 0.25);
}

TEST(TrajectoryFigures, HaveTheFourOfNeuralCollapse) {
  auto run = bare_run(1, 0);
  const auto of_train = [](const std::string& name, double value) {
    return Reading{.name = name, .value = value, .split = "train"};
  };
  // NC1 that is 0 has no place on its axis; NC4 of the test split is no default.
  add_snapshot(run, 1,
               {of_train("nc1_trace_pinv", 0), of_train("nc2_etf_error", 0.75),
                of_train("nc3_self_duality", 0.5), of_train("nc4_ncc_mismatch", 0.25),
                of_network("nc4_ncc_mismatch", 0.9), of_layer("nc4_ncc_mismatch", "conv", 0.8)});
  add_snapshot(run, 2, {of_train("nc1_trace_pinv", 3)});
  const auto figures = figures_of({run});
  EXPECT_EQ(names_of(figures), (std::vector<std::string>{"nc1-over-steps", "nc2-over-steps",
                                                         "nc3-over-steps", "nc4-over-steps"}));
  const std::vector<PlotPoint> expected = {
      {.x = 2, .y = 3}, {.x = 1, .y = 0.75}, {.x = 1, .y = 0.5}, {.x = 1, .y = 0.25}};
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto points = points_of(figures, figures[i].name);
    ASSERT_EQ(points.size(), 1U) << figures[i].name;
    EXPECT_EQ(points[0].x, expected[i].x) << figures[i].name;
    EXPECT_EQ(points[0].y, expected[i].y) << figures[i].name;
  }
}

TEST(TrajectoryFigures, CountSingularValuesOfTheLogitsAboveTheThreshold) {
  auto run = bare_run(1, 0);
  add_snapshot(run, 0, {}, {8, 4, 2});
  add_snapshot(run, 1, {}, {8, 0.016, 0.004});
  add_snapshot(run, 2, {}, {0, 0, 0});
  add_snapshot(run, 3, {}, {std::numeric_limits<double>::quiet_NaN(), 1});
  const auto points = points_of(figures_of({run}), "logits-rank-over-steps");
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].x, 1);
  EXPECT_EQ(points[0].y, 2);
  EXPECT_EQ(points[1].y, 0);
}

TEST(TrajectoryFigures, LeaveZerosOutOfLogarithms) {
  auto run = bare_run(1, 0);
  add_snapshot(run, 1, {of_network("top_singular_share", 0)});
  add_snapshot(run, 2, {of_network("top_singular_share", 0.5)});
  const auto points = points_of(figures_of({run}), "top-singular-share-over-steps");
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].x, 2);
}

TEST(TrajectoryFigures, KeepZeroWhereItIsAnAnswer) {
  auto run = bare_run(1, 0);
  add_snapshot(run, 1, {of_network("gradient_rank_violations", 0)});
  EXPECT_EQ(points_of(figures_of({run}), "gradient-rank-violations-over-steps").at(0).y, 0);
}

TEST(TrajectoryFigures, TakeTheirDefinitionFromTheReadingsAtTheEnd) {
  auto run = bare_run(1, 0);
  add_snapshot(run, 1, {of_layer("covariance_rank", "fc", 9)});
  auto at_the_end = of_layer("covariance_rank", "fc", 9);
  at_the_end.definition = {{"gamma", 1e-3}, {"samples", 500}};
  run.readings.push_back(at_the_end);
  EXPECT_EQ(figures_of({run}).at(0).definition, "gamma 0.001");
}

// A section that others come in between would get two headings.
TEST(TrajectoryFigures, StandTogetherInTheReport) {
  auto run = bare_run(1, 0);
  add_snapshot(run, 1, {of_network("alignment", 0.5)}, {2, 1});
  run.readings = {{.name = "singular_value", .value = 1, .index = 0},
                  of_layer("covariance_rank", "fc", 9)};
  std::vector<std::string> sections;
  for (const auto& figure : run_figures({run}, compare({run}))) sections.push_back(figure.section);
  const std::string at_the_end = "Spectrum and depth at the end of training";
  EXPECT_EQ(sections,
            (std::vector<std::string>{"Over training", "Over training", at_the_end, at_the_end}));
}

}  // namespace kelvin::trajectory_figures_test
