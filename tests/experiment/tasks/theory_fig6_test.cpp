#include "kelvin/experiment/tasks/theory_fig6.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support/errors.h"

namespace kelvin::theory_fig6_test {

// The values of a name for one k, in the order of the scales.
std::vector<double> course(const Readings& readings, const std::string& name, int64_t k) {
  std::vector<double> values;
  for (const auto& reading : readings) {
    if (reading.name == name && reading.definition.at("k") == k) values.push_back(reading.value);
  }
  return values;
}

TEST(TheoryFig6, RisesAndFallsForEveryRank) {
  const auto readings = theory_fig6({.most_rank = 3, .draws = 3, .scales = {0.1, 10, 1e6}}, {});
  for (int64_t k = 1; k <= 3; ++k) {
    const auto ranks = course(readings, "post_softmax_rank", k);
    ASSERT_EQ(ranks.size(), 3U);
    EXPECT_LT(ranks[0], ranks[1]) << k;
    EXPECT_GT(ranks[1], ranks[2]) << k;
    EXPECT_EQ(ranks[2], course(readings, "distinct_argmaxes", k).at(0)) << k;
    const auto cosines = course(readings, "column_cosine", k);
    EXPECT_GT(cosines[0], 0.99) << k;
    EXPECT_LT(cosines[1], cosines[0]) << k;
  }
  EXPECT_EQ(course(readings, "post_softmax_rank", 1).at(2), 2);
}

TEST(TheoryFig6, HasFourScalesInADecadeByDefault) {
  const auto readings = theory_fig6({.n = 5, .most_rank = 1, .draws = 1}, {});
  EXPECT_EQ(course(readings, "logits_norm", 1).size(), 21U);
}

TEST(TheoryFig6, IntervalsReachOverTheDraws) {
  for (const auto& reading : theory_fig6({.n = 12, .draws = 4, .scales = {5}}, {})) {
    ASSERT_TRUE(reading.interval.has_value());
    EXPECT_LE(reading.interval->low, reading.value);
    EXPECT_GE(reading.interval->high, reading.value);
  }
}

TEST(TheoryFig6, IsTheSameForTheSameSeed) {
  const Figure6Request request{.n = 8, .draws = 2, .scales = {3}, .seed = 4};
  const auto a = theory_fig6(request, {});
  const auto b = theory_fig6(request, {});
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].value, b[i].value);
}

TEST(TheoryFig6, EndsWhenItIsAskedTo) {
  EXPECT_EQ(error_of([] { theory_fig6({.n = 8}, {.should_stop = [] { return true; }}); }),
            "stopped before rank 1; nothing is shown");
}

TEST(TheoryFig6, RejectsWhatItCannotDraw) {
  EXPECT_EQ(error_of([] { theory_fig6({.n = 1}, {}); }),
            "theory fig6: n must be from 2 to 2000, got 1");
  EXPECT_EQ(error_of([] { theory_fig6({.n = 3, .most_rank = 4}, {}); }),
            "theory fig6: the ranks must be from 1 to n = 3, got 4");
  EXPECT_EQ(error_of([] { theory_fig6({.draws = 0}, {}); }),
            "theory fig6: draws must be from 1 to 10000, got 0");
  EXPECT_EQ(error_of([] { theory_fig6({.gamma = 0}, {}); }),
            "theory fig6: gamma must be in (0, 1), got 0");
  EXPECT_EQ(error_of([] { theory_fig6({.scales = {-1}}, {}); }),
            "theory fig6: scales must be finite numbers above 0, got -1");
}

}  // namespace kelvin::theory_fig6_test
