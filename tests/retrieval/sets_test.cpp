#include "kelvin/retrieval/sets.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/errors.h"

namespace kelvin::sets_test {

TEST(RetrievalSets, AskForTheClassOfTheItemOfHighestPriority) {
  const auto sets = draw_sets({.count = 50}, 1);
  for (int64_t i = 0; i < 50; ++i) {
    const auto size = sets.sizes[i].item<int64_t>();
    const auto winner = sets.priorities[i].narrow(0, 0, size).argmax().item<int64_t>();
    EXPECT_EQ(sets.labels[i].item<int64_t>(), sets.classes[i][winner].item<int64_t>());
  }
}

TEST(RetrievalSets, HaveSizesFromLeastToMostAndMaskTheRest) {
  const auto sets = draw_sets({.count = 500, .least = 3, .most = 7}, 2);
  EXPECT_EQ(sets.sizes.min().item<int64_t>(), 3);
  EXPECT_EQ(sets.sizes.max().item<int64_t>(), 7);
  const auto is_masked = sets.is_masked();
  EXPECT_TRUE(torch::equal((~is_masked).sum(1), sets.sizes));
  EXPECT_EQ(sets.priorities.masked_select(is_masked).abs().max().item<float>(), 0);
}

TEST(RetrievalSets, OfOneSizeHaveNoMask) {
  EXPECT_FALSE(draw_sets({.count = 4, .least = 6, .most = 6}, 3).is_masked().defined());
}

TEST(RetrievalSets, AreUniform) {
  const auto sets = draw_sets({.count = 2000, .least = 16, .most = 16}, 4);
  EXPECT_NEAR(sets.priorities.mean().item<double>(), 0.5, 0.01);
  EXPECT_NEAR(sets.queries.mean().item<double>(), 0.5, 0.03);
  const auto counts = torch::bincount(sets.classes.flatten(), {}, 10);
  EXPECT_NEAR(counts.min().item<double>() / 3200, 1, 0.1);
}

TEST(RetrievalSets, DependOnTheirSeedAlone) {
  EXPECT_TRUE(torch::equal(draw_sets({}, 5).priorities, draw_sets({}, 5).priorities));
  EXPECT_FALSE(torch::equal(draw_sets({}, 5).priorities, draw_sets({}, 6).priorities));
}

TEST(RetrievalSets, RejectWhatIsNoSet) {
  EXPECT_EQ(error_of([] { draw_sets({.count = 0}, 0); }),
            "draw_sets: needs at least one set, got 0");
  EXPECT_EQ(error_of([] { draw_sets({.least = 5, .most = 4}, 0); }),
            "draw_sets: sizes must go up from at least 1, got 5 to 4");
  EXPECT_EQ(error_of([] { draw_sets({.classes = 1}, 0); }),
            "draw_sets: needs at least two classes, got 1");
}

}  // namespace kelvin::sets_test
