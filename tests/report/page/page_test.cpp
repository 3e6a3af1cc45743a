#include "kelvin/report/page/page.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "kelvin/core/check.h"
#include "tests/report/report_runs.h"

namespace kelvin::page_test {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

PageInput sweep() {
  PageInput input{.title = "Low and high T", .command = "kelvin demo"};
  for (int64_t seed = 0; seed < 3; ++seed) {
    input.runs.push_back(run_with_rank(1, seed, 49));
    input.runs.push_back(run_with_rank(100, seed, 10 + static_cast<double>(seed)));
  }
  for (auto& run : input.runs) add_metrics(run, {{0.5, 30}, {0.9, 20}});
  input.claims = {{.reading = "solution_rank",
                   .direction = "lower",
                   .at = {{"train.temperature", 100}},
                   .against = {{"train.temperature", 1}}}};
  return input;
}

TEST(Page, TellsTheStoryInWords) {
  const auto html = render_page(sweep());
  EXPECT_TRUE(
      has(html, "<strong>6 runs</strong>: temperature 1 (3 seeds) against temperature 100"));
  EXPECT_TRUE(has(html, "falls from <strong>49</strong> to <strong>11</strong>"));
  EXPECT_TRUE(has(html, "in 3 of 3 seeds: 38.0 ± 2.5 lower"));
  EXPECT_TRUE(has(html, "kelvin demo"));
}

TEST(Page, DoesNotCallOneSeedAFall) {
  auto input = sweep();
  input.runs.resize(2);
  const auto html = render_page(input);
  EXPECT_FALSE(has(html, "falls from"));
  EXPECT_TRUE(has(html, "is <strong>49</strong> and <strong>10</strong>"));
}

TEST(Page, SaysFromWhichStepOnARankHadComeDown) {
  auto input = sweep();
  const std::string line = "rank within one of its last from step 20 on, never all";
  EXPECT_TRUE(has(render_page(input), "<li>runs/t1s0: " + line));
  for (auto& run : input.runs) run.metrics.clear();
  EXPECT_FALSE(has(render_page(input), "rank within one of its last"));
}

TEST(Page, AsksForNothingFromOutside) {
  const auto html = render_page(sweep());
  EXPECT_TRUE(has(html, "default-src 'none'"));
  const std::regex address("(src|href)=\"(?!data:|#)");
  EXPECT_FALSE(std::regex_search(html, address));
  EXPECT_FALSE(has(html, "@import"));
  EXPECT_FALSE(has(html, "url("));
}

TEST(Page, EscapesEverythingThatComesFromFiles) {
  const std::string attack = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>";
  auto input = sweep();
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

TEST(Page, DefinesTheReadingsItUses) {
  const auto html = render_page(sweep());
  EXPECT_TRUE(has(html, "<dt>solution rank (SR)<code>solution_rank</code>"));
  EXPECT_TRUE(has(html, "gamma 0.001, shift_free true"));
  EXPECT_FALSE(has(html, "<code>kappa</code>"));
}

TEST(Page, RefusesNoRuns) { EXPECT_THROW(render_page({.title = "x"}), Error); }

}  // namespace kelvin::page_test
