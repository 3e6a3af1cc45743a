#include "kelvin/report/equal_accuracy.h"

#include <gtest/gtest.h>

#include "tests/report/report_runs.h"

namespace kelvin {
namespace {

TEST(EqualAccuracy, IsTheLargestThatEveryRunReaches) {
  auto fast = bare_run(1, 0);
  auto slow = bare_run(100, 0);
  add_metrics(fast, {{0.5, 10}, {0.9, 20}});
  add_metrics(slow, {{0.3, 4}, {0.7, 5}, {0.6, 6}});
  EXPECT_EQ(common_accuracy({fast, slow}), 0.7);
  EXPECT_EQ(rank_at_accuracy(fast, 0.7)->value, 20);
  EXPECT_EQ(rank_at_accuracy(slow, 0.7)->value, 5);
}

TEST(EqualAccuracy, IgnoresTheInitialisation) {
  auto run = bare_run(1, 0);
  add_metrics(run, {{0.2, 3}});
  EXPECT_EQ(common_accuracy({run}), 0.2);
  EXPECT_EQ(rank_at_accuracy(run, 0.2)->value, 3);
}

TEST(EqualAccuracy, IsNoneWithoutMetrics) {
  EXPECT_FALSE(common_accuracy({bare_run(1, 0)}));
  EXPECT_FALSE(rank_at_accuracy(bare_run(1, 0), 0.1));
}

TEST(EqualAccuracy, HasNoRankWhereNoneWasMeasured) {
  auto run = bare_run(1, 0);
  run.metrics.push_back({{"epoch", 1}, {"train_accuracy", 0.5}, {"solution_rank", nullptr}});
  EXPECT_FALSE(rank_at_accuracy(run, 0.5));
  EXPECT_FALSE(rank_at_accuracy(run, 0.6));
}

}  // namespace
}  // namespace kelvin
