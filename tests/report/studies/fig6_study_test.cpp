#include <gtest/gtest.h>

#include <tuple>

#include "kelvin/report/studies/study.h"

namespace kelvin::fig6_study_test {

// Of k = 1 at three scales, as the task gives them.
Readings rising_and_falling() {
  Readings readings;
  const Definition common = {{"k", 1}, {"n", 30}, {"gamma", 0.001}, {"draws", 5}};
  const auto add = [&](const char* name, double scale, double value) {
    auto meaning = common;
    meaning["c"] = scale;
    readings.push_back(
        {.name = name, .value = value, .interval = Interval{value, value}, .definition = meaning});
  };
  for (const auto& [scale, rank, cosine] :
       {std::tuple(0.1, 2.0, 0.999), std::tuple(10.0, 8.0, 0.6), std::tuple(1e4, 2.0, 0.49)}) {
    add("post_softmax_rank", scale, rank);
    add("logits_norm", scale, 10 * scale);
    add("column_cosine", scale, cosine);
    add("column_top_weight", scale, 0.5);
  }
  readings.push_back({.name = "distinct_argmaxes", .value = 2, .definition = common});
  return readings;
}

TEST(Fig6Study, SaysWhereTheRankRisesAndFallsInItsNumbers) {
  const auto study = fig6_study(rising_and_falling());
  ASSERT_EQ(study.findings.size(), 3U);
  EXPECT_EQ(study.findings[1],
            "k = 1: rank 2 at c = 0.1, where all columns are nearly the same (mean cosine 0.999, "
            "largest weight 0.500); 8 at c = 10 (cosine 0.600, largest weight 0.500); 2 at c = "
            "10000 (cosine 0.490, largest weight 0.500), where columns have 2 different "
            "arg-maxes.");
}

TEST(Fig6Study, HasARowForEachScaleAndALineForEachRank) {
  const auto study = fig6_study(rising_and_falling());
  ASSERT_EQ(study.tables.size(), 2U);
  EXPECT_EQ(study.tables[0].rows[1], (std::vector<std::string>{"10", "8"}));
  EXPECT_EQ(study.tables[1].rows[0], (std::vector<std::string>{"0.1", "1", "0.999"}));
  ASSERT_EQ(study.figures.size(), 3U);
  const auto& figure = std::get<LineFigure>(study.figures[0].figure);
  ASSERT_EQ(figure.series.size(), 1U);
  EXPECT_EQ(figure.series[0].points.size(), 3U);
}

}  // namespace kelvin::fig6_study_test
