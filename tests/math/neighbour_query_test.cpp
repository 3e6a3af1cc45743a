#include "kelvin/math/neighbour_query.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "tests/support/tensors.h"

namespace kelvin {
namespace {

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

}  // namespace
}  // namespace kelvin
