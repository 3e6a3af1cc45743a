#include "kelvin/numerics/nearest_neighbours.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>

#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::nearest_neighbours_test {

// From all differences in double precision.
torch::Tensor by_hand(const torch::Tensor& rows, const torch::Tensor& queries, int64_t k) {
  const auto all = torch::cdist(queries.to(torch::kFloat64), rows.to(torch::kFloat64), 2,
                                /*compute_mode=*/2);
  return std::get<0>(all.kthvalue(k, 1));
}

void expect_exact(const torch::Tensor& rows, const torch::Tensor& queries, int64_t k) {
  const auto found = NearestNeighbours(rows, k).distances(queries);
  const auto expected = by_hand(rows, queries, k);
  EXPECT_TRUE(((found - expected).abs() <= 1e-12 * expected).all().item<bool>())
      << torch::stack({found, expected}, 1);
}

// Classes in a few directions, less and less in the others, as features of networks are.
torch::Tensor features(int64_t rows, int64_t dims, uint64_t seed) {
  const auto means = 2 * noise({10, dims}, 1000);
  const auto scales = torch::arange(1, dims + 1, torch::kFloat64).pow(-1.2);
  const auto scattered = (noise({rows, dims}, seed) * scales).matmul(noise({dims, dims}, 1001));
  return means.index_select(0, torch::arange(rows) % 10) + scattered;
}

TEST(NearestNeighbours, MeasureTheKthNearest) {
  const auto rows = doubles({0, 1, 3, 7}).view({4, 1});
  const auto queries = doubles({0, 3.5, -1}).view({3, 1});
  expect_close(NearestNeighbours(rows, 1).distances(queries), doubles({0, 0.5, 1}), 0);
  expect_close(NearestNeighbours(rows, 2).distances(queries), doubles({1, 2.5, 2}), 0);
  expect_close(NearestNeighbours(rows, 4).distances(queries), doubles({7, 3.5, 8}), 0);
}

TEST(NearestNeighbours, AreThoseOfScikitLearn) {
  const auto rows = features(6000, 48, 0);
  const auto queries = torch::cat({features(100, 48, 1), 3 * noise({100, 48}, 2)});
  const auto expected = oracle(R"(
from sklearn.neighbors import NearestNeighbors
search = NearestNeighbors(n_neighbors=50, algorithm="kd_tree").fit(x["rows"])
out["distances"] = search.kneighbors(x["queries"])[0][:, -1]
)",
                               {{"rows", rows}, {"queries", queries}});
  const NearestNeighbours neighbours(rows, 50);
  EXPECT_EQ(neighbours.k(), 50);
  EXPECT_GT(neighbours.principal_coordinates(), 0);
  EXPECT_LT(neighbours.principal_coordinates(), 48);
  expect_close(neighbours.distances(queries), expected.at("distances"), 1e-11);
}

TEST(NearestNeighbours, AreExactWhateverTheSpectrum) {
  // A few queries of each kind: like the rows, unlike them, and rows themselves.
  for (const int64_t dims : {1, 5, 40}) {
    for (const auto& rows : {features(4500, dims, 3), noise({4500, dims}, 4)}) {
      const auto queries =
          torch::cat({features(40, dims, 5), 5 * noise({40, dims}, 6), rows.slice(0, 0, 20)});
      for (const int64_t k : {1, 2, 50, 4500}) expect_exact(rows, queries, k);
    }
  }
}

TEST(NearestNeighbours, AreExactOfRowsThatLieClose) {
  // Distances of 1e-5 around vectors of length 1.
  const auto rows = 1e-5 * noise({5000, 20}, 7) + noise({20}, 8);
  expect_exact(rows, rows.slice(0, 0, 30) + 1e-5 * noise({30, 20}, 9), 50);
  // The same at two places: single precision cannot order them.
  const auto places = torch::stack({noise({20}, 8), noise({20}, 24)});
  const auto at = [&](int64_t count, uint64_t seed) {
    return places.index_select(0, torch::arange(count) % 2) + 1e-5 * noise({count, 20}, seed);
  };
  expect_exact(at(5000, 7), at(30, 9), 50);
  expect_exact(1e12 + 1e8 * noise({300, 20}, 7), 1e12 + 1e8 * noise({30, 20}, 9), 5);
}

TEST(NearestNeighbours, AreExactOfAnySize) {
  const auto rows = features(300, 12, 10);
  const auto queries = features(20, 12, 11);
  for (const double size : {1e-30, 1e-10, 1e30}) expect_exact(rows * size, queries * size, 9);
  expect_exact(rows, 1e20 * queries, 9);
  expect_exact(rows, 1e9 * queries, 9);
}

TEST(NearestNeighbours, CountEqualRowsEach) {
  const auto rows = doubles({0, 0, 0, 5, 5}).view({5, 1});
  const auto query = doubles({1}).view({1, 1});
  expect_close(NearestNeighbours(rows, 3).distances(query), doubles({1}), 0);
  expect_close(NearestNeighbours(rows, 4).distances(query), doubles({4}), 0);
  const auto equal = torch::full({9000, 3}, 0.1, torch::kFloat64);
  const NearestNeighbours neighbours(equal, 50);
  expect_close(neighbours.distances(equal.slice(0, 0, 2)), torch::zeros({2}), 0);
  expect_close(neighbours.distances(equal.slice(0, 0, 1) + doubles({3, 0, 4})), doubles({5}),
               1e-14);
}

TEST(NearestNeighbours, FindFewWhereTheSampleSeesNone) {
  // Most rows are far away; the near ones are too few for a sample.
  auto rows = 100 + features(9000, 30, 12);
  rows.slice(0, 100, 160).copy_(0.1 * noise({60, 30}, 13));
  expect_exact(rows, 0.1 * noise({20, 30}, 14), 50);
  expect_exact(rows, 0.1 * noise({20, 30}, 14), 61);
}

TEST(NearestNeighbours, AreExactOfOodQueriesThatAreEquallyFarFromMostRows) {
  // Coordinates of different rows: principal ones say nothing of these.
  const auto rows = features(5000, 60, 21);
  auto ood = features(50, 60, 22);
  for (int64_t i = 0; i < 60; ++i) ood.select(1, i).copy_(ood.select(1, i).roll(i));
  ASSERT_GT(NearestNeighbours(rows, 50).principal_coordinates(), 0);
  expect_exact(rows, ood, 50);
  expect_exact(rows, 20 * noise({50, 60}, 23), 50);
}

TEST(NearestNeighbours, DoNotDependOnOtherQueries) {
  const auto rows = features(5000, 32, 15);
  const auto queries = features(301, 32, 16);
  const NearestNeighbours neighbours(rows, 50);
  const auto together = neighbours.distances(queries);
  expect_close(torch::cat({neighbours.distances(queries.slice(0, 0, 7)),
                           neighbours.distances(queries.slice(0, 7))}),
               together, 0);
  EXPECT_EQ(neighbours.distances(queries.slice(0, 0, 0)).size(0), 0);
}

TEST(NearestNeighbours, TakeMoreQueriesThanAreHeldAtOnce) {
  expect_exact(noise({40, 2}, 17), noise({9000, 2}, 18), 3);
}

TEST(NearestNeighbours, TakeFloats) {
  const auto rows = features(500, 12, 19).to(torch::kFloat32);
  expect_exact(rows, features(20, 12, 20).to(torch::kFloat32), 9);
}

TEST(NearestNeighbours, RejectWhatIsNotThere) {
  const auto rows = noise({9, 3}, 0);
  EXPECT_EQ(error_of([&] { NearestNeighbours(rows, 0); }),
            "NearestNeighbours: k must be in [1, 9], got 0");
  EXPECT_EQ(error_of([&] { NearestNeighbours(rows, 10); }),
            "NearestNeighbours: k must be in [1, 9], got 10");
  EXPECT_EQ(error_of([&] { NearestNeighbours(rows[0], 1); }),
            "NearestNeighbours: rows must be [rows, dims], got [3]");
  EXPECT_EQ(error_of([&] {
              NearestNeighbours(rows, 1).distances(noise({2, 4}, 0));
            }),
            "NearestNeighbours: queries must have 3 dims, got 4");
  EXPECT_EQ(error_of([&] { NearestNeighbours().distances(rows); }),
            "NearestNeighbours: has no rows");
  EXPECT_EQ(error_of([&] { NearestNeighbours(1e200 * rows, 2); }),
            "NearestNeighbours: distances between rows must be finite");
  auto broken = rows.clone();
  broken[2][1] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(error_of([&] { NearestNeighbours(broken, 1); }),
            "NearestNeighbours: rows must be finite, have a NaN or an infinity");
  EXPECT_EQ(error_of([&] { NearestNeighbours(rows, 1).distances(broken); }),
            "NearestNeighbours: queries must be finite, have a NaN or an infinity");
}

}  // namespace kelvin::nearest_neighbours_test
