#include "kelvin/numerics/neighbour_index.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "tests/support/tensors.h"

namespace kelvin::neighbour_index_test {

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
  const auto refined = torch::cdist(points.refined.to(torch::kFloat64),
                                    index.rows.refined.to(torch::kFloat64), 2, /*compute_mode=*/2);
  EXPECT_TRUE((refined <= distances + 1e-5).all().item<bool>());
  EXPECT_TRUE((refined.square() >= bounds - 1e-5).all().item<bool>());
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

NeighbourIndex index_of_noise() { return {noise({30, 8}, 0), 2}; }

NeighbourQuery query_of(const NeighbourIndex& index, double length) {
  return {.length = length, .margins = {index, length}};
}

TEST(NeighbourQuery, KeepsTheKSmallestDistances) {
  auto query = query_of(index_of_noise(), 1);
  for (const double distance : {5., 2., 4., 3., 9.}) query.add(7, distance, 2);
  EXPECT_EQ(query.measured.size(), 5U);
  EXPECT_EQ(query.nearest.size(), 2U);
  EXPECT_EQ(query.nearest.front(), 3);
  query.forget();
  EXPECT_TRUE(query.measured.empty() && query.nearest.empty() && query.hits.empty());
}

TEST(NeighbourQuery, NeedsEverythingUntilItHasMeasuredEnough) {
  auto query = query_of(index_of_noise(), 1);
  query.add(0, 0.5, 2);
  EXPECT_EQ(query.needed_product(2, 0), NeighbourQuery::kEverything);
  EXPECT_EQ(query.needed_closeness(2), NeighbourQuery::kEverything);
}

TEST(NeighbourQuery, NeedsLittleLessThanItsKthNearest) {
  auto query = query_of(index_of_noise(), 2);
  query.add(0, 0.5, 1);
  const double product = (4 - 0.25) / 2;
  EXPECT_LT(query.needed_product(1, 0), product);
  EXPECT_GT(query.needed_product(1, 0), product - 1e-5);
  EXPECT_LT(query.needed_product(1, 0.1), product - 0.1);
  EXPECT_LT(query.needed_closeness(1), -0.25);
  EXPECT_GT(query.needed_closeness(1), -0.25 - 1e-4);
}

TEST(NeighbourMargins, CoverTheRoundingOfProductsAndDistances) {
  const auto rows = noise({300, 40}, 1) + 3;
  const auto queries = noise({300, 40}, 2);
  const NeighbourIndex index(rows, 2);
  const auto points = index.points_of(queries);
  const auto exact = torch::cdist(queries, rows, 2, /*compute_mode=*/2) * index.scale;
  const auto products = points.reduced.matmul(index.rows.reduced.t()).to(torch::kFloat64);
  const auto from_products = points.lengths.square().unsqueeze(1) - 2 * products;
  const auto distances =
      torch::cdist(points.floats, index.rows.floats, 2, /*compute_mode=*/2).to(torch::kFloat64);
  for (int64_t i = 0; i < 300; ++i) {
    const NeighbourMargins margins(index, points.lengths[i].item<double>());
    const auto wrong = ((from_products[i] - exact[i].square()) / 2).abs();
    EXPECT_LE(wrong.max().item<double>(), margins.few);
    EXPECT_LE(margins.few, 1e-4);
    EXPECT_TRUE(((distances[i] - exact[i]).abs() <= margins.distance + margins.relative * exact[i])
                    .all()
                    .item<bool>());
    EXPECT_LE(margins.of(1), 1e-5);
  }
}

}  // namespace kelvin::neighbour_index_test
