#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/command.h"

namespace kelvin::theory_test {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(TheoryVerb, ShowsFigure6WithDefinitions) {
  const std::vector<std::string> words = {"theory",  "fig6", "--n",      "12",     "--ranks", "2",
                                          "--draws", "2",    "--scales", "0.1,10", "-q"};
  const auto text = run_tool(words);
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_TRUE(has(text.out, "Why it rises and falls")) << text.out;
  auto as_json = words;
  as_json.insert(as_json.end(), {"-o", "json"});
  const auto readings = nlohmann::json::parse(run_tool(as_json).out).at("readings");
  EXPECT_EQ(readings.at(0).at("name"), "post_softmax_rank");
  EXPECT_EQ(readings.at(0).at("definition").at("n"), 12);
}

TEST(TheoryVerb, WritesAPageAndItsFigures) {
  const TemporaryFolder folder;
  const auto result = run_tool({"theory", "dispersion", "--spreads", "3", "--lengths", "4,64", "-q",
                                "--output", folder / "page.html", "--svg", folder / "figures"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(whole_file(folder / "page.html"), "<figure id=\"top-weight-bound\">"));
  EXPECT_TRUE(has(whole_file(folder / "figures/entropy-bound.svg"), "<svg"));
}

TEST(TheoryVerb, CountsViolationsOfProposition31) {
  const auto result = run_tool({"theory", "prop31", "--matrices", "50", "--most", "6", "-q"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "0 of 50 random matrices")) << result.out;
}

TEST(TheoryVerb, ConstructsSolutionsOfRankTwo) {
  const auto result = run_tool({"theory", "prop32", "--classes", "10", "-q", "-o", "csv"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "circle_scale")) << result.out;
}

struct TheoryRefusal {
  std::vector<std::string> words;
  std::string message;
};

TEST(TheoryVerb, RefusesInOneLine) {
  const std::vector<TheoryRefusal> refusals = {
      {{"theory"}, "a job is required; there are: dispersion, fig6, prop31, prop32"},
      {{"theory", "fig6", "--n", "x"}, "--n: "},
      {{"theory", "fig6", "--n", "1"}, "theory fig6: n must be from 2 to 2000, got 1"},
      {{"theory", "prop31", "nothing.npz"}, "nothing.npz: no such run or file"},
      {{"theory", "prop32", "nothing"}, "nothing: is not a run folder (no config.toml)"},
      {{"theory", "dispersion", "--output", "page.txt"}, "must end in .html"},
      {{"theory", "dispersion", "-T", "0"}, "the temperature must be a finite number above 0"}};
  for (const auto& refusal : refusals) {
    const auto result = run_tool(refusal.words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_TRUE(has(result.err, refusal.message)) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

}  // namespace kelvin::theory_test
