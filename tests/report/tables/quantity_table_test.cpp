#include "kelvin/report/tables/quantity_table.h"

#include <gtest/gtest.h>

#include "tests/report/report_runs.h"

namespace kelvin::quantity_table_test {

TEST(RankVariants, HaveARowPerDefinitionWithTheDefaultOnesFirst) {
  auto run = bare_run(1, 0);
  auto without_bias = rank_reading(7);
  without_bias.definition["bias"] = false;
  auto curve = rank_reading(3, 1e-5);
  curve.definition["curve"] = true;
  run.readings = {rank_reading(10, 1e-3, false), rank_reading(5, 1e-2), rank_reading(9),
                  without_bias, curve};
  const Runs runs = {run};
  const auto table = rank_variants_table(runs, compare(runs));
  ASSERT_EQ(table.rows.size(), 4);
  EXPECT_EQ(table.rows[0], (std::vector<std::string>{"shift-free", "with", "0.01", "5"}));
  EXPECT_EQ(table.rows[1], (std::vector<std::string>{"shift-free", "with", "0.001", "9"}));
  EXPECT_EQ(table.rows[2], (std::vector<std::string>{"shift-free", "without", "0.001", "7"}));
  EXPECT_EQ(table.rows[3], (std::vector<std::string>{"raw", "with", "0.001", "10"}));
}

TEST(RankVariants, LeaveAGapWhereAGroupHasNone) {
  const Runs runs = {run_with_rank(1, 0, 9), bare_run(100, 0)};
  EXPECT_EQ(rank_variants_table(runs, compare(runs)).rows[0].back(), "–");
}

TEST(RankVariants, AreNoneWithoutReadings) {
  const Runs runs = {bare_run(1, 0)};
  EXPECT_TRUE(rank_variants_table(runs, compare(runs)).rows.empty());
}

Readings example() {
  return {
      {.name = "accuracy", .value = 0.5, .split = "test", .definition = {{"samples", 10}}},
      {.name = "accuracy", .value = 0.75, .split = "train", .definition = {{"samples", 10}}},
      {.name = "solution_rank",
       .value = 9,
       .split = "test",
       .definition = {{"gamma", 1e-3}, {"upper_bound", 9}}},
      {.name = "solution_rank", .value = 7, .split = "test", .definition = {{"gamma", 1e-2}}},
      {.name = "rho", .value = 0.25, .split = "test", .ood = "svhn"},
  };
}

TEST(QuantityTable, HasOneRowPerQuantityAndOneColumnPerPopulation) {
  const auto [table, left_out] = quantity_table(example());
  EXPECT_EQ(text_of(table),
            "quantity       test  train  svhn\n"
            "-------------  ----  -----  ----\n"
            "accuracy        0.5   0.75\n"
            "solution_rank    9†\n"
            "rho                         0.25\n"
            "\n"
            "† At its upper bound, which the number of samples, features or classes sets: it could "
            "not be higher.\n");
  EXPECT_EQ(left_out, 1U);
}

TEST(QuantityTable, ExplainsTheSignsThatItHasAndNoOthers) {
  const auto plain = quantity_table({{.name = "accuracy", .value = 1}});
  EXPECT_TRUE(plain.table.notes.empty());
  EXPECT_EQ(plain.table.columns.at(1).name, "value");
  const auto doubtful = quantity_table(
      {{.name = "covariance_rank", .value = 64, .definition = {{"is_reliable", false}}}});
  EXPECT_EQ(doubtful.table.rows.at(0).at(1), "~ 64");
  ASSERT_EQ(doubtful.table.notes.size(), 1U);
  EXPECT_TRUE(doubtful.table.notes[0].starts_with("~ Not reliable"));
}

// An error of 1 is as bad as can be, and no rank that could not be higher.
TEST(QuantityTable, MarksBoundsOfRanksAlone) {
  EXPECT_EQ(marked_value({.name = "mce", .value = 1, .definition = {{"upper_bound", 1}}}, 4), "1");
  EXPECT_EQ(
      marked_value({.name = "solution_rank", .value = 9, .definition = {{"upper_bound", 9}}}, 4),
      "9†");
}

}  // namespace kelvin::quantity_table_test
