#include "kelvin/report/rank_variants.h"

#include <gtest/gtest.h>

#include "tests/report/report_runs.h"

namespace kelvin {
namespace {

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

}  // namespace
}  // namespace kelvin
