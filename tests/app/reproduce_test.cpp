#include <gtest/gtest.h>

#include "kelvin/runs/recipe.h"
#include "tests/support/command.h"

namespace kelvin::reproduce_test {

namespace fs = std::filesystem;

TEST(ReproduceVerb, PrintsThePapersNumbersBesideOursAgainFromKeptReadings) {
  const TemporaryFolder folder;
  const std::vector<std::string> words = {"reproduce",  "init_scale",    "--scale",
                                          "smoke",      "--output",      folder / "out",
                                          "--readings", folder / "kept", "-q"};
  const auto none = run_tool({"reproduce", "table1", "--scale", "smoke", "--no-train", "--readings",
                              folder / "kept", "--output", folder / "none"});
  EXPECT_EQ(none.exit_code, 0) << none.err;
  EXPECT_NE(none.err.find("table1: 12 of 12 runs are missing; they are made by:\n"
                          "  kelvin sweep table1 --scale smoke\n"),
            std::string::npos)
      << none.err;
  EXPECT_TRUE(
      none.out.starts_with("Table 1: rank of the logits, effective depth and loss of OOD "
                           "accuracy at low and\nhigh temperature (smoke)\n\n"))
      << none.out;

  const auto trained = run_tool(words);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.out.find("kelvin sweep init_scale --scale smoke --only"), std::string::npos)
      << trained.out;
  EXPECT_NE(trained.out.find("direction only"), trained.out.find("not shown")) << trained.out;
  EXPECT_TRUE(fs::exists(folder / "out/report.html"));

  ASSERT_EQ(
      run_tool({"sweep", "--harvest", "--output", folder / "out", "--readings", folder / "kept"})
          .exit_code,
      0);
  const auto again =
      run_tool({"reproduce", "init_scale", "--scale", "smoke", "--no-train", "--output",
                folder / "none", "--readings", folder / "kept", "-o", "csv"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.err, "");
  auto from_folders = words;
  from_folders[6] = "--readings";
  from_folders[7] = folder / "nowhere";
  from_folders.insert(from_folders.end(), {"-o", "csv", "--no-train"});
  EXPECT_EQ(run_tool(from_folders).out, again.out);
}

TEST(ReproduceVerb, ShowsStrictAndTunedCasesSideBySideOnceARateIsChosen) {
  const TemporaryFolder folder;
  const auto reproduce = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"reproduce",  "table1",        "--scale",
                                      "smoke",      "--output",      folder / "out",
                                      "--readings", folder / "kept", "-q"};
    words.insert(words.end(), more.begin(), more.end());
    return run_tool(words, {"COLUMNS=200"});
  };
  const auto strict = reproduce({"--no-train"});
  EXPECT_EQ(strict.exit_code, 0) << strict.err;
  EXPECT_NE(strict.err.find("table1: no train.lr is chosen yet for mlp-tuned,temperature=1.0, "
                            "mlp-tuned,temperature=30.0, resnet18-tuned,temperature=1.0, "
                            "resnet18-tuned,temperature=30.0, which is done by: kelvin sweep "
                            "table1 --scale smoke --tune\n"),
            std::string::npos)
      << strict.err;

  const auto tuned =
      run_tool({"sweep", "table1", "--scale", "smoke", "--output", folder / "out", "--readings",
                folder / "kept", "--tune", "--only", "mlp*", "-q", "-o", "csv"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_TRUE(
      tuned.out.starts_with("table1-smoke: 4 trials, 0 done before, 4 now\n"
                            "tuned,setting,value,validation accuracy,outcome\n"
                            "\"mlp-tuned,temperature=1.0\",train.lr,0.02,"))
      << tuned.out;
  const auto sweep = run_tool({"sweep", "table1", "--scale", "smoke", "--output", folder / "out",
                               "--readings", folder / "kept", "--only", "mlp*", "-q"});
  ASSERT_EQ(sweep.exit_code, 0) << sweep.err;
  const auto both = reproduce({"--no-train"});
  EXPECT_EQ(both.exit_code, 0) << both.err;
  const auto of_strict = both.out.find("mlp (strict)");
  const auto of_tuned = both.out.find("mlp-tuned (tuned: lr 0.");
  EXPECT_LT(of_strict, of_tuned) << both.out;
  EXPECT_NE(of_tuned, std::string::npos) << both.out;
  EXPECT_NE(both.out.find("κ is lower at temperature 30 than at temperature 1, tuned"),
            std::string::npos)
      << both.out;
}

TEST(ReproduceVerb, NamesTheRecipesThereAre) {
  const auto result = run_tool({"reproduce", "table9"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(result.err.starts_with(
      "kelvin reproduce: no recipe named 'table9', nor a file of that name; there are: "))
      << result.err;
  EXPECT_NE(result.err.find(" table1, "), std::string::npos) << result.err;
  for (const char* demo : {" demo", "trade_off"}) {
    EXPECT_EQ(result.err.find(demo), std::string::npos) << result.err;
  }
  EXPECT_EQ(run_tool({"reproduce", "all", "--scale", "huge"}).exit_code, 2);
}

TEST(ReproduceVerb, TakesARecipeWithoutTheDefaultScaleAsItStands) {
  const TemporaryFolder folder;
  const auto result = run_tool({"reproduce", "demo", "--no-train", "--readings", folder / "kept",
                                "--output", folder / "none"},
                               {"COLUMNS=100"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("kelvin sweep demo\n"), std::string::npos) << result.err;
  EXPECT_NE(result.out.find("(as it stands)"), std::string::npos) << result.out;
}

TEST(ReproduceAllSlow, ExercisesEveryRecipeAtSmokeScale) {
  const TemporaryFolder folder;
  const auto result = run_tool({"reproduce", "all", "--scale", "smoke", "--output", folder / "out",
                                "--readings", folder / "kept", "-q"},
                               {"COLUMNS=200"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const auto& [name, text] : builtin_recipes()) {
    EXPECT_NE(result.out.find(parse_recipe(text, name, "").title), std::string::npos) << name;
  }
}

}  // namespace kelvin::reproduce_test
