#include <gtest/gtest.h>

#include "kelvin/core/files.h"
#include "tests/support/command.h"
#include "tests/support/fake_run.h"

namespace kelvin::report_test {

constexpr auto kRecipe = R"(# Rank against temperature, for a test.
[sweep]
train.temperature = [1, 100]

[[claim]]
reading = "solution_rank"
direction = "lower"
at = { "train.temperature" = 100 }
against = { "train.temperature" = 1 }
)";

class ReportVerb : public testing::Test {
 protected:
  ReportVerb() {
    for (const int64_t seed : {0, 1, 2}) {
      const auto suffix = std::to_string(seed);
      write_fake_run(folder_.path() / "runs" / ("low" + suffix), 1, seed, 90 + double(seed));
      write_fake_run(folder_.path() / "runs" / ("high" + suffix), 100, seed, 40);
    }
  }

  TemporaryFolder folder_;
};

TEST_F(ReportVerb, WritesThePageIntoTheFirstFolderAndPrintsItsPath) {
  const auto result = run_tool({"report", folder_ / "runs"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, folder_ / "runs/report.html\n");
  EXPECT_NE(whole_file(folder_ / "runs/report.html").find("</html>"), std::string::npos);
}

TEST_F(ReportVerb, TakesTitleAndClaimsFromTheRecipe) {
  write_file_atomically(folder_ / "runs/recipe.toml", kRecipe);
  const auto result = run_tool({"report", folder_ / "runs", "--output", folder_ / "a/b.html"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, folder_ / "a/b.html\n");
  const auto page = whole_file(folder_ / "a/b.html");
  EXPECT_NE(page.find("Rank against temperature, for a test."), std::string::npos);
  EXPECT_NE(page.find("3 of 3 seeds"), std::string::npos);
}

TEST_F(ReportVerb, WritesTheDataOfItsFigures) {
  const auto result = run_tool({"report", folder_ / "runs", "--csv", folder_ / "figures"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(whole_file(folder_ / "figures/fit-and-collapse.csv").starts_with("run,steps,"));
  EXPECT_NE(result.out.find(folder_ / "figures"), std::string::npos) << result.out;
}

TEST_F(ReportVerb, NamesTheCasesOfARecipeInFiguresOfAllRuns) {
  for (const auto& [name, norm] : {std::pair{"hot,seed=1", 0.3}, std::pair{"wide,seed=1", 9.0}}) {
    Config config;
    config.set("seed", 1);
    config.set("model.width", norm);
    const auto run = RunFolder::create(folder_ / ("cases/" + std::string(name)), config,
                                       {{"command", "kelvin train"}});
    run.append_metrics({{"step", 0}, {"epoch", 0}, {"logits_norm_over_t", norm}});
    run.add_readings({{.name = "kappa", .value = norm / 10}});
    run.set_status(RunStatus::finished);
  }
  write_file_atomically(folder_ / "cases/recipe.toml",
                        "# Levers\n[[case]]\nname = \"hot\"\n[[case]]\nname = \"wide\"\n");
  const auto result = run_tool({"report", folder_ / "cases/", "--csv", folder_ / "figures"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto csv = whole_file(folder_ / "figures/kappa-over-start-norm.csv");
  EXPECT_NE(csv.find("\nhot,,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\nwide,,"), std::string::npos) << csv;
}

// Columns are named by the runs and data that they are about.
TEST_F(ReportVerb, ReplacesATableOfOtherColumns) {
  const std::vector<std::string> words = {"report", folder_ / "runs", "--csv", folder_ / "figures"};
  ASSERT_EQ(run_tool(words).exit_code, 0);
  const auto path = folder_ / "figures/fit-and-collapse.csv";
  const auto table = whole_file(path);
  write_file_atomically(path, "run,steps,of other runs\na,1,2\n");
  const auto result = run_tool(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(whole_file(path), table);
}

TEST_F(ReportVerb, DoesNotLoadLibTorch) {
  const auto result = run_tool({"report", folder_ / "runs"}, {"LD_DEBUG=libs"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.err.find("libkelvin_base"), std::string::npos);
  EXPECT_EQ(result.err.find("libtorch"), std::string::npos);
}

TEST_F(ReportVerb, RefusesAFolderWithoutRuns) {
  std::filesystem::create_directory(folder_ / "empty");
  const auto result = run_tool({"report", folder_ / "empty"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "kelvin report: " + (folder_ / "empty") + ": holds no runs\n");
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "empty"));
}

TEST_F(ReportVerb, RefusesAFolderAsItsOutput) {
  const auto result = run_tool({"report", folder_ / "runs", "--output", folder_.path().string()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("is a folder, must be a file"), std::string::npos) << result.err;
}

}  // namespace kelvin::report_test
