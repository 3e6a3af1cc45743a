#include "kelvin/report/page/page.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "kelvin/core/check.h"
#include "tests/report/page/page_input.h"

namespace kelvin::page_test {

TEST(Page, AsksForNothingFromOutside) {
  const auto html = render_page(two_temperatures());
  EXPECT_TRUE(has(html, "default-src 'none'"));
  const std::regex address("(src|href)=\"(?!data:|#)");
  EXPECT_FALSE(std::regex_search(html, address));
  EXPECT_FALSE(has(html, "@import"));
  EXPECT_FALSE(has(html, "url("));
}

TEST(Page, EscapesEverythingThatComesFromFiles) {
  const std::string attack = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>";
  auto input = two_temperatures();
  input.title = attack;
  input.command = attack;
  auto& run = input.runs[0];
  run.path = attack;
  run.config.set("model.name", attack);
  run.config.set(attack, 1);
  run.metadata = {{attack, attack}, {"versions", {{"torch", attack}}}};
  run.scores = {{.detector = attack, .ood = attack, .id_scores = {1, 2}, .ood_scores = {0}}};
  run.readings.push_back({.name = attack, .value = 1, .definition = {{attack, attack}}});
  run.readings.push_back({.name = "probe_accuracy", .value = 1, .layer = attack, .ood = attack});
  run.readings.push_back({.name = "auroc", .value = 1, .detector = attack, .ood = attack});
  input.claims[0].at[attack] = attack;
  const auto html = render_page(input);
  EXPECT_FALSE(has(html, "<script>alert"));
  EXPECT_FALSE(has(html, "<img"));
  EXPECT_TRUE(has(html, "&lt;script&gt;alert"));
}

TEST(Page, OfOneRunWithoutResultsStillSaysWhatItIs) {
  auto run = bare_run(7, 3);
  run.status = RunStatus::stopped;
  const auto html = render_page({.title = "One", .runs = {run}});
  EXPECT_TRUE(has(html, "<strong>1 run</strong>: temperature 7 (1 seed)."));
  EXPECT_TRUE(has(html, "Not every run is finished (1 stopped of 1)"));
  EXPECT_FALSE(has(html, "<figure"));
  EXPECT_FALSE(has(html, "Verdicts"));
}

TEST(Page, SurvivesNonFiniteAndMissingNumbers) {
  auto run = run_with_rank(NAN, 0, NAN);
  run.metrics = {{{"epoch", 1}, {"loss", nullptr}, {"train_accuracy", NAN}, {"solution_rank", 3}},
                 nlohmann::ordered_json::array({1}),
                 {{"epoch", "two"}, {"seconds", INFINITY}}};
  run.scores = {{.detector = "msp", .ood = "svhn", .id_scores = {NAN}, .ood_scores = {}}};
  EXPECT_TRUE(has(render_page({.title = "x", .runs = {run}}), "</html>"));
}

TEST(Page, RefusesNoRuns) { EXPECT_THROW(render_page({.title = "x"}), Error); }

}  // namespace kelvin::page_test
