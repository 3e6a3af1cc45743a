#include "kelvin/report/csv.h"

#include <gtest/gtest.h>

#include "tests/report/report_runs.h"

namespace kelvin {
namespace {

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

}  // namespace
}  // namespace kelvin
