#include "kelvin/report/page/figure_files.h"

#include <gtest/gtest.h>

#include "tests/report/report_runs.h"

namespace kelvin::figure_files_test {

TEST(FigureSvgs, AreTheFiguresThatHaveACsv) {
  auto run = bare_run(1, 0);
  add_metrics(run, {{0.5, 30}});
  const PageInput input{.runs = {run}};
  const auto svgs = figure_svgs(input);
  const auto csvs = figure_csvs(input);
  ASSERT_FALSE(svgs.empty());
  for (const auto& [name, svg] : svgs) {
    EXPECT_TRUE(csvs.contains(name)) << name;
    EXPECT_NE(svg.find("<svg"), std::string::npos) << name;
    EXPECT_NE(svg.find("xmlns=\"http://www.w3.org/2000/svg\""), std::string::npos) << name;
  }
}

TEST(FigureCsvs, HoldThePointsOfLines) {
  auto run = bare_run(1, 0);
  add_metrics(run, {{0.5, 30}});
  const auto csvs = figure_csvs({.runs = {run}});
  EXPECT_EQ(csvs.at("rank-against-accuracy"),
            "series,detail,training accuracy,solution rank,low,high\nT = 1,seed 0,0.5,30,,\n");
}

TEST(FigureCsvs, HoldTheBinsOfHistograms) {
  auto run = bare_run(1, 0);
  run.scores = {{.detector = "msp", .ood = "svhn", .id_scores = {0, 40}, .ood_scores = {0}}};
  const auto csvs = figure_csvs({.runs = {run}});
  EXPECT_TRUE(
      csvs.at("scores-msp-svhn-t-1").starts_with("low,high,in distribution,svhn\n0,1,0.5,1\n"));
}

TEST(FigureCsvs, NameLayers) {
  auto run = bare_run(1, 0);
  run.readings.push_back({.name = "probe_accuracy", .value = 0.5, .layer = "fc, last"});
  const auto csvs = figure_csvs({.runs = {run}});
  EXPECT_NE(csvs.at("probes").find("T = 1,,\"fc, last\",0.5,0.5,0.5"), std::string::npos);
}

}  // namespace kelvin::figure_files_test
