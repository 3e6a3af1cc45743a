#include "kelvin/kernels/distances.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>

#include "tests/support/tensors.h"

namespace kelvin::distances_test {

using Hits = std::vector<std::vector<ProductHit>>;

torch::Tensor floats(const std::vector<int64_t>& shape, uint64_t seed) {
  return noise(shape, seed).to(torch::kFloat32);
}

Hits hits_of(const torch::Tensor& rows, const torch::Tensor& queries,
             const std::vector<float>& thresholds) {
  const auto packed = packed_rows(rows.data_ptr<float>(), rows.size(0), rows.size(1));
  const auto asked = packed_queries(queries.data_ptr<float>(), queries.size(0), queries.size(1));
  Hits hits(thresholds.size());
  append_products_above(packed, 0, packed.count, asked, thresholds, hits.data());
  return hits;
}

// Every row whose product surely reaches the threshold is named, and none that surely does not.
void expect_hits(const std::vector<ProductHit>& hits, const torch::Tensor& products,
                 double threshold) {
  auto reached = torch::zeros({products.size(0)}, torch::kBool);
  for (const auto& hit : hits) {
    EXPECT_FALSE(reached[hit.row].item<bool>()) << "named twice";
    EXPECT_NEAR(hit.product, products[hit.row].item<double>(), 1e-4);
    reached[hit.row] = true;
  }
  const auto surely = products >= threshold + 1e-4;
  const auto perhaps = products >= threshold - 1e-4;
  EXPECT_TRUE((reached | surely.logical_not()).all().item<bool>());
  EXPECT_TRUE((perhaps | reached.logical_not()).all().item<bool>());
}

void expect_products(int64_t rows, int64_t queries, int64_t width) {
  const auto left = floats({rows, width}, 0);
  const auto right = floats({queries, width}, 1);
  std::vector<float> thresholds;
  thresholds.reserve(static_cast<size_t>(queries));
  for (int64_t i = 0; i < queries; ++i) thresholds.push_back(0.3F * static_cast<float>(i));
  const auto found = hits_of(left, right, thresholds);
  const auto products = right.to(torch::kFloat64).matmul(left.to(torch::kFloat64).t());
  for (size_t query = 0; query < thresholds.size(); ++query) {
    expect_hits(found[query], products[static_cast<int64_t>(query)], thresholds[query]);
  }
}

TEST(DistanceKernels, FindTheProductsThatReachAThreshold) {
  // Whole groups of rows and of queries, and parts of them.
  for (const int64_t rows : {1, 15, 16, 17, 40, 211}) {
    for (const int64_t queries : {1, 5, 6, 7, 20}) {
      for (const int64_t width : {1, 3, 34}) expect_products(rows, queries, width);
    }
  }
}

TEST(DistanceKernels, GiveTheSameProductWhateverElseIsAskedFor) {
  const auto rows = floats({50, 9}, 2);
  const auto queries = floats({13, 9}, 3);
  const auto lowest = -std::numeric_limits<float>::infinity();
  const auto together = hits_of(rows, queries, std::vector<float>(13, lowest));
  for (int64_t query = 0; query < 13; ++query) {
    const auto alone = hits_of(rows, queries.slice(0, query, query + 1).contiguous(), {lowest})[0];
    const auto& among = together[static_cast<size_t>(query)];
    ASSERT_EQ(alone.size(), 50U);
    ASSERT_EQ(among.size(), 50U);
    for (size_t i = 0; i < 50; ++i) {
      EXPECT_EQ(alone[i].row, among[i].row);
      EXPECT_EQ(alone[i].product, among[i].product);
    }
  }
}

TEST(DistanceKernels, AppendRowsOfARangeToWhatIsThere) {
  const auto rows = torch::ones({40, 1});
  const auto packed = packed_rows(rows.data_ptr<float>(), 40, 1);
  const float one = 1;
  const auto query = packed_queries(&one, 1, 1);
  Hits hits = {{{.row = 9, .product = 7}}};
  append_products_above(packed, 16, 19, query, {1}, hits.data());
  ASSERT_EQ(hits[0].size(), 4U);
  EXPECT_EQ(hits[0][0].row, 9);
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(hits[0][i].row, 15 + static_cast<int32_t>(i));
}

TEST(DistanceKernels, MeasureSquaredDistances) {
  for (const int64_t dims : {1, 7, 32, 33, 100}) {
    const auto rows = floats({6, dims}, 4);
    const auto query = floats({dims}, 5);
    const std::vector<ProductHit> hits = {{4, 0}, {0, 0}, {5, 0}, {4, 0}};
    std::vector<float> found(4);
    squared_distances(query.data_ptr<float>(), rows.data_ptr<float>(), dims, hits.data(), 4,
                      found.data());
    for (size_t i = 0; i < 4; ++i) {
      const auto exact =
          (rows[hits[i].row].to(torch::kFloat64) - query.to(torch::kFloat64)).square().sum();
      const auto tolerance = static_cast<double>(dims) / 8 + 16;
      EXPECT_NEAR(found[i], exact.item<double>(), tolerance * 0x1p-24 * exact.item<double>());
    }
  }
}

}  // namespace kelvin::distances_test
