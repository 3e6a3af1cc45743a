#include "kelvin/report/svg.h"

#include <gtest/gtest.h>

#include "kelvin/report/csv.h"
#include "tests/report/report_runs.h"

namespace kelvin {
namespace {

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

}  // namespace
}  // namespace kelvin
