#include "kelvin/report/quantity_table.h"

#include <gtest/gtest.h>

namespace kelvin {
namespace {

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

}  // namespace
}  // namespace kelvin
