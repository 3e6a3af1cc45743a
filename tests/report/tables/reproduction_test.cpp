#include "kelvin/report/tables/reproduction.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace kelvin::reproduction_test {

Run run_with(double temperature, int64_t seed, double rank) {
  Run run{.path = "", .config = {}, .metadata = {}, .metrics = {}, .readings = {}, .scores = {}};
  run.config.set("seed", seed);
  run.config.set("train.temperature", temperature);
  run.status = RunStatus::finished;
  run.readings = {{.name = "solution_rank",
                   .value = rank,
                   .split = "test",
                   .definition = {{"bias", true}, {"shift_free", true}}}};
  return run;
}

ReproducedCase example_case(const std::vector<double>& low, const std::vector<double>& high) {
  ReproducedCase example{.name = "mlp"};
  for (size_t seed = 0; seed < low.size(); ++seed) {
    example.runs.push_back(run_with(1, static_cast<int64_t>(seed), low[seed]));
    example.commands.emplace_back("make low");
    example.runs.push_back(run_with(30, static_cast<int64_t>(seed), high[seed]));
    example.commands.emplace_back("make high");
  }
  return example;
}

const Claim kLower = {.reading = "solution_rank",
                      .direction = "lower",
                      .at = {{"train.temperature", 30.0}},
                      .against = {{"train.temperature", 1.0}}};

constexpr auto kExpected =
    "case,at,reading,detector,ood,value,source\n"
    "mlp,train.temperature=1,solution_rank,,,99,Table 1\n"
    "mlp,train.temperature>1,solution_rank,,,59,Table 1\n"
    "other,train.temperature>1,solution_rank,,,1,Table 1\n";

CaseReproduction reproduced(const std::vector<double>& low, const std::vector<double>& high) {
  return reproduction({example_case(low, high)}, {kLower}, parse_expected(kExpected, "o")).at(0);
}

TEST(Reproduction, PutsThePapersNumberBesideOurs) {
  const auto table = reproduction_table(reproduced({98, 99, 97}, {60, 62, 58}));
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.columns[1].name, "T = 1");
  EXPECT_EQ(table.columns[2].name, "paper");
  EXPECT_EQ(table.rows[0][2], "99");
  EXPECT_EQ(table.rows[0][4], "59");
  EXPECT_EQ(table.columns.back().name, "difference");
}

TEST(Reproduction, SaysHowEachRowIsMade) {
  const auto each = reproduced({98, 99, 97}, {60, 62, 58});
  const auto commands = command_table(each);
  EXPECT_EQ(commands.rows, (std::vector<std::vector<std::string>>{{"T = 1", "make low"},
                                                                  {"T = 30", "make high"}}));
  const auto records = reproduction_records("table1", "laptop", {each});
  ASSERT_EQ(records.rows.size(), 3U);  // two values and a claim
  EXPECT_EQ(records.rows[0].back(), "make low");
  EXPECT_EQ(records.rows[0].size(), records.columns.size());
  EXPECT_EQ(records.rows[2].size(), records.columns.size());
}

TEST(Reproduction, SaysWhetherItIsStrictOrTunedAndWhatWasChosen) {
  const auto strict = reproduced({98, 99, 97}, {60, 62, 58});
  EXPECT_EQ(reproduction_table(strict).title, "mlp (strict)");
  EXPECT_TRUE(finding_table(strict).rows.at(0).front().ends_with(", strict"));

  auto example = example_case({98, 99}, {60, 62});
  for (auto& run : example.runs) {
    run.config.set("train.lr", run.config.at("train.temperature") == 1.0 ? 0.02 : 0.5);
  }
  // Without a word from the recipe: two settings differ, and nobody knows why.
  EXPECT_EQ(reproduction_table(reproduction({example}, {}, {}).at(0)).title, "mlp");
  example.tuned_key = "train.lr";
  const auto tuned = reproduction({example}, {kLower}, {}).at(0);
  EXPECT_EQ(reproduction_table(tuned).title, "mlp (tuned: lr 0.02 at T = 1, lr 0.5 at T = 30)");
  EXPECT_TRUE(finding_table(tuned).rows.at(0).front().ends_with(", tuned"));
  const auto records = reproduction_records("table1", "laptop", {strict, tuned});
  EXPECT_EQ(records.columns[3].name, "comparison");
  EXPECT_EQ(records.rows.front()[3], "strict");
  EXPECT_EQ(records.rows.back()[3], "tuned");
}

TEST(Reproduction, ShowsChosenValuesAlsoIfTheyAreEqual) {
  auto example = example_case({98, 99}, {60, 62});
  for (auto& run : example.runs) run.config.set("train.lr", 0.5);
  example.tuned_key = "train.lr";
  EXPECT_EQ(reproduction_table(reproduction({example}, {}, {}).at(0)).title,
            "mlp (tuned: lr 0.5 at T = 1, lr 0.5 at T = 30)");
}

std::string found_in(const std::vector<double>& low, const std::vector<double>& high) {
  return finding(reproduced(low, high).verdicts.at(0));
}

TEST(Finding, IsConfirmedOnlyIfEverySeedAndTheIntervalSaySo) {
  EXPECT_EQ(found_in({98, 99, 97}, {60, 62, 58}), "confirmed");
  EXPECT_EQ(found_in({98, 99}, {60, 62}), "direction only");          // too few seeds
  EXPECT_EQ(found_in({98, 99, 97}, {97, 50, 96}), "direction only");  // the interval includes zero
  EXPECT_EQ(found_in({98, 99, 97}, {60, 62, 98}), "not shown");
  EXPECT_EQ(found_in({60, 62, 58}, {98, 99, 97}), "opposite");
  EXPECT_EQ(found_in({60, 62}, {98, 99}), "not shown");
  EXPECT_EQ(found_in({60, 62, 58}, {60, 62, 58}), "not shown");
}

TEST(ExpectedNumbers, OfAllRecipesCanBeReadAndAreOfTheirCases) {
  for (const auto& [name, text] : expected_numbers()) {
    ASSERT_TRUE(builtin_recipes().contains(name)) << name;
    const auto recipe = parse_recipe(builtin_recipes().at(name), name, "");
    for (const auto& number : parse_expected(text, name)) {
      const bool is_planned =
          std::any_of(recipe.runs.begin(), recipe.runs.end(),
                      [&](const PlannedRun& run) { return run.case_name == number.case_name; });
      EXPECT_TRUE(is_planned) << name << ": " << number.case_name;
    }
  }
}

TEST(ExpectedNumbers, SayWhereAFileIsWrong) {
  const auto refusal = [](const std::string& csv) {
    return error_of([&] { parse_expected(csv, "o"); });
  };
  const std::string head = "case,at,reading,detector,ood,value,source\n";
  EXPECT_NE(refusal("case\n").find("o: line 1: must be case,at,"), std::string::npos);
  EXPECT_EQ(refusal(head + "a,b\n"), "o: line 2: must have 7 cells, has 2");
  EXPECT_EQ(refusal(head + ",,kappa,,,x,\n"), "o: line 2: must be a number, got 'x'");
  EXPECT_EQ(refusal(head + ",T,kappa,,,1,\n"),
            "o: line 2: must say which runs, as train.temperature>1, says 'T'");
}

}  // namespace kelvin::reproduction_test
