#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kelvin/report/figures/figures.h"
#include "kelvin/report/page/figure_files.h"
#include "tests/report/report_runs.h"

namespace kelvin::detection_figures_test {

std::vector<RunFigure> figures_of(const Runs& runs) {
  const auto comparison = compare(runs);
  std::vector<RunFigure> figures;
  add_detection_figures({.runs = runs, .comparison = comparison}, figures);
  return figures;
}

std::vector<std::string> names_of(const std::vector<RunFigure>& figures) {
  std::vector<std::string> names;
  for (const auto& figure : figures) names.push_back(figure.name);
  return names;
}

Run detecting_run(double temperature, int64_t seed, double rho, double auroc) {
  auto run = bare_run(temperature, seed);
  run.readings.push_back({.name = "rho", .value = rho, .ood = "svhn"});
  for (const char* detector : {"knn", "neco"}) {
    run.readings.push_back({.name = "auroc",
                            .value = detector == std::string("neco") ? auroc : 0.1,
                            .split = "test",
                            .detector = detector,
                            .ood = "svhn"});
  }
  return run;
}

TEST(DetectionFigures, DrawTheRocOfEachGroup) {
  auto run = bare_run(1, 0);
  run.scores = {{.detector = "msp", .ood = "svhn", .id_scores = {1, 2, 3}, .ood_scores = {0, 2}}};
  const auto figures = figures_of({run});
  EXPECT_EQ(names_of(figures), (std::vector<std::string>{"roc-msp-svhn", "scores-msp-svhn-t-1"}));
  const auto& points = std::get<LineFigure>(figures[0].figure).series.at(0).points;
  ASSERT_EQ(points.size(), 5U);
  EXPECT_EQ(points[0].x, 0);
  EXPECT_EQ(points[0].y, 0);
  EXPECT_DOUBLE_EQ(points[2].x, 0.5);
  EXPECT_DOUBLE_EQ(points[2].y, 2. / 3);
  EXPECT_EQ(points[4].x, 1);
  EXPECT_EQ(points[4].y, 1);
}

TEST(DetectionFigures, ThinOutLongCurvesButKeepTheirEnds) {
  auto run = bare_run(1, 0);
  Scores scores{.detector = "msp", .ood = "svhn", .id_scores = {}, .ood_scores = {}};
  for (int i = 0; i < 20'000; ++i) {
    scores.id_scores.push_back(i + 0.5);
    scores.ood_scores.push_back(i);
  }
  run.scores = {scores};
  const auto figures = figures_of({run});
  const auto& points = std::get<LineFigure>(figures[0].figure).series.at(0).points;
  EXPECT_LT(points.size(), 600U);
  EXPECT_GT(points.size(), 200U);
  EXPECT_EQ(points.back().x, 1);
  EXPECT_EQ(points.back().y, 1);
}

TEST(DetectionFigures, OfManyDetectorsShowNecoTheBaselineAndTheBest) {
  auto run = bare_run(1, 0);
  const std::pair<const char*, double> aurocs[] = {
      {"energy", 0.8}, {"knn", 0.95}, {"msp", 0.7}, {"neco", 0.9}, {"vim", 0.85}};
  for (const auto& [detector, auroc] : aurocs) {
    run.scores.push_back(
        {.detector = detector, .ood = "svhn", .id_scores = {1}, .ood_scores = {0}});
    run.readings.push_back(
        {.name = "auroc", .value = auroc, .split = "test", .detector = detector, .ood = "svhn"});
  }
  const auto names = names_of(figures_of({run}));
  EXPECT_EQ(std::count_if(names.begin(), names.end(),
                          [](const auto& name) { return name.starts_with("roc-"); }),
            3);
  for (const char* shown : {"roc-neco-svhn", "roc-msp-svhn", "roc-knn-svhn"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), shown), names.end()) << shown;
  }
}

TEST(DetectionFigures, AreLeftOutWhereScoresAreNone) {
  auto run = bare_run(1, 0);
  run.scores = {{.detector = "msp", .ood = "svhn", .id_scores = {NAN}, .ood_scores = {}}};
  for (const auto& name : names_of(figures_of({run}))) EXPECT_FALSE(name.starts_with("roc-"));
}

TEST(DetectionFigures, SetDetectionAgainstGeneralisationAPointPerTemperature) {
  const Runs runs = {detecting_run(1, 0, 0.1, 0.6), detecting_run(1, 1, 0.3, 0.8),
                     detecting_run(100, 0, 0.5, 0.9), detecting_run(100, 1, 0.7, 0.9)};
  const auto figures = figures_of(runs);
  ASSERT_EQ(names_of(figures),
            std::vector<std::string>{"detection-against-generalisation-neco-svhn"});
  const auto& figure = std::get<LineFigure>(figures[0].figure);
  ASSERT_EQ(figure.series.size(), 3U);  // the mean, and each seed
  EXPECT_NEAR(figure.series[0].points[0].x, 0.2, 1e-12);
  EXPECT_NEAR(figure.series[0].points[0].y, 0.7, 1e-12);
  EXPECT_NEAR(figure.series[0].points[1].x, 0.6, 1e-12);
  EXPECT_NEAR(figure.series[0].points[1].y, 0.9, 1e-12);
  EXPECT_EQ(figure.series[2].detail, "seed 1");
  EXPECT_EQ(figure.series[2].points[0].x, 0.3);
  ASSERT_EQ(figure.marks.size(), 2U);
  EXPECT_EQ(figure.marks[1].label, "T = 100");
  // The numbers alone would not tell which temperature a point is of.
  EXPECT_EQ(figure_csvs({.runs = runs}).at(figures[0].name),
            "series,detail,point,OOD drop ρ (less generalisation to the right),AUROC of neco,low,"
            "high\n"
            "mean over seeds,,T = 1,0.2,0.7,,\n"
            "mean over seeds,,T = 100,0.6,0.9,,\n"
            "each seed,seed 0,T = 1,0.1,0.6,,\n"
            "each seed,seed 0,T = 100,0.5,0.9,,\n"
            "each seed,seed 1,T = 1,0.3,0.8,,\n"
            "each seed,seed 1,T = 100,0.7,0.9,,\n");
}

TEST(DetectionFigures, NeedTwoTemperaturesForATradeOff) {
  EXPECT_TRUE(figures_of({detecting_run(1, 0, 0.1, 0.6)}).empty());
}

}  // namespace kelvin::detection_figures_test
