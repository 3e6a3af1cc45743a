#include <gtest/gtest.h>

#include "kelvin/core/files.h"
#include "kelvin/runs/recipe.h"
#include "tests/support/command.h"
#include "tests/support/fake_run.h"

namespace kelvin::demo_test {

namespace fs = std::filesystem;

TEST(DemoVerb, RefusesAFolderWithOtherRunsAndLeavesThemAlone) {
  const TemporaryFolder folder;
  write_fake_run(folder.path() / "mine", 1, 0, 90);
  write_file_atomically(folder / "recipe.toml", "# mine\n");
  const auto result = run_tool({"demo", "--scale", "smoke", "--output", folder.path().string()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("holds another run"), std::string::npos) << result.err;
  EXPECT_EQ(load_run(folder / "mine").status, RunStatus::finished);
  EXPECT_EQ(whole_file(folder / "recipe.toml"), "# mine\n");
}

TEST(DemoVerb, RefusesRecipesOfHours) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& recipe) {
    const auto result = run_tool({"demo", "--recipe", recipe, "--output", folder / "out"});
    EXPECT_EQ(result.exit_code, 2) << recipe;
    EXPECT_FALSE(fs::exists(folder / "out")) << recipe;
    return result.err;
  };
  EXPECT_EQ(refusal("table1"),
            "kelvin demo: --recipe: must be demo, demo_tuned, trade_off; 'table1' is for "
            "'kelvin reproduce table1'\n");
  EXPECT_EQ(refusal("table9"),
            "kelvin demo: --recipe: no recipe named 'table9'; there are: demo, demo_tuned, "
            "trade_off\n");
}

TEST(DemoVerb, EndsWithTableVerdictAndReportAndCanBeRepeated) {
  const TemporaryFolder folder;
  const auto planned = parse_recipe(builtin_recipes().at("demo"), "demo", "smoke").runs.size();
  for (int i = 0; i < 2; ++i) {
    const auto result =
        run_tool({"demo", "--scale", "smoke", "--jobs", "1", "--output", folder / "demo"},
                 {"OMP_NUM_THREADS=3"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    for (const auto& run : find_runs(folder / "demo")) {
      EXPECT_EQ(load_run(run).metadata.at("versions").at("threads"), 3) << run;
    }
    EXPECT_NE(result.out.find("solution rank"), std::string::npos) << result.out;
    EXPECT_NE(result.out.find("report: " + (folder / "demo/report.html")), std::string::npos);
    EXPECT_EQ(find_runs(folder / "demo").size(), planned);
    EXPECT_TRUE(fs::exists(folder / "demo/report.html"));
    EXPECT_TRUE(fs::exists(folder / "demo/recipe.toml"));
    EXPECT_EQ(result.err.find("replacing") != std::string::npos, i == 1) << result.err;
  }
}

}  // namespace kelvin::demo_test
