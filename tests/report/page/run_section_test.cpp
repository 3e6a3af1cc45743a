#include <gtest/gtest.h>

#include "kelvin/report/page/sections.h"
#include "tests/report/page/page_input.h"

namespace kelvin::run_section_test {

TEST(RunSection, SaysFromWhichStepOnARankHadComeDown) {
  auto input = two_temperatures();
  const std::string line = "rank within one of its last from step 20 on, never all";
  EXPECT_TRUE(has(render_page(input), "<li>runs/t1s0: " + line));
  for (auto& run : input.runs) run.metrics.clear();
  EXPECT_FALSE(has(render_page(input), "rank within one of its last"));
}

TEST(RunSection, ShowsSharedSettingsOnceAndOthersOfEachRun) {
  auto input = two_temperatures();
  input.runs.resize(2);
  for (auto& run : input.runs) run.config.set("model.name", "mlp");
  const auto html = run_section(input, compare(input.runs));
  EXPECT_TRUE(has(html, "<td>model.name</td><td>mlp</td>")) << html;
  EXPECT_TRUE(has(html, "<td>1 · 100</td>")) << html;
}

}  // namespace kelvin::run_section_test
