#include "kelvin/math/neighbour_index.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/tensors.h"

namespace kelvin {
namespace {

// Large in a few directions, small in the others.
torch::Tensor flat(int64_t rows, int64_t dims, uint64_t seed) {
  const auto scales = torch::arange(1, dims + 1, torch::kFloat64).pow(-1.5);
  return (noise({rows, dims}, seed) * scales).matmul(noise({dims, dims}, 77)) + 2;
}

TEST(NeighbourIndex, KeepsFewRowsAsTheyAre) {
  const auto rows = noise({100, 40}, 0);
  const NeighbourIndex index(rows, 5);
  EXPECT_FALSE(index.axes.defined());
  EXPECT_EQ(index.packed_sample.count, 0);
  EXPECT_EQ(index.packed.count, 100);
  EXPECT_EQ(index.packed.width, 41);
  expect_close(index.rows.doubles, rows, 0);
  expect_close(index.rows.floats, (rows - rows.mean(0)) * index.scale, 1e-6);
  EXPECT_GE(index.longest, 1);
  EXPECT_LT(index.longest, 2);
}

TEST(NeighbourIndex, BoundsDistancesFromBelowByProducts) {
  const auto rows = flat(6000, 60, 1);
  const auto queries = flat(20, 60, 2) + 0.1 * noise({20, 60}, 3);
  const NeighbourIndex index(rows, 10);
  ASSERT_TRUE(index.axes.defined());
  EXPECT_LT(index.few, 60);
  EXPECT_EQ(index.packed.width, index.few + 2);
  EXPECT_GE(index.axes.size(1), index.few);
  const auto points = index.points_of(queries);
  const auto products =
      points.reduced.to(torch::kFloat64).matmul(index.rows.reduced.to(torch::kFloat64).t());
  const auto bounds = points.lengths.square().unsqueeze(1) - 2 * products;
  const auto distances = torch::cdist(queries, rows, 2, /*compute_mode=*/2) * index.scale;
  EXPECT_TRUE((bounds <= distances.square() + 1e-5).all().item<bool>());
  EXPECT_GT((bounds / distances.square()).mean().item<double>(), 0.5);  // and not by far
  const auto closer = torch::cdist(points.closer.to(torch::kFloat64),
                                   index.rows.closer.to(torch::kFloat64), 2, /*compute_mode=*/2);
  EXPECT_TRUE((closer <= distances + 1e-5).all().item<bool>());
  EXPECT_TRUE((closer.square() >= bounds - 1e-5).all().item<bool>());
}

TEST(NeighbourIndex, ComparesAllCoordinatesWhereNoneStandOut) {
  const NeighbourIndex index(noise({5000, 40}, 4), 10);
  EXPECT_FALSE(index.axes.defined());
  EXPECT_EQ(index.packed.width, 41);
  EXPECT_EQ(index.packed_sample.count, static_cast<int64_t>(index.sample.size()));
  EXPECT_GT(index.packed_sample.count, 0);
}

TEST(NeighbourIndex, ForgetsCopiesThatCannotMatter) {
  const auto distinct = noise({3, 4}, 5);
  const auto rows = distinct.index_select(0, torch::arange(300) % 3);
  const NeighbourIndex index(rows, 7);
  EXPECT_EQ(index.rows.count(), 21);
  const NeighbourIndex few(distinct, 3);
  EXPECT_EQ(few.rows.count(), 3);
}

TEST(NeighbourIndex, OfEqualRowsHasNoLength) {
  const NeighbourIndex index(torch::ones({9, 4}, torch::kFloat64), 2);
  EXPECT_EQ(index.longest, 0);
  EXPECT_EQ(index.scale, 1);
  EXPECT_EQ(index.rows.count(), 2);
}

}  // namespace
}  // namespace kelvin
