#include "kelvin/numerics/feature_sketch.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::feature_sketch_test {

TEST(RowHash, AddsRotatedBlocksWithTheirSigns) {
  const std::vector<float> row = {1, 2, 3, 10, 20, 30, 100};
  const std::vector<float> signs = {1, -1, 1, 1, 1, -1, -1};
  const std::vector<int64_t> shifts = {0, 1, 2};
  std::vector<float> sums = {0.5, 0, 0};
  add_hashed_rows({.dims = 7, .width = 3, .signs = signs.data(), .shifts = shifts.data()},
                  row.data(), 1, sums.data());
  // 1 -2 3, then 10 20 -30 rotated by one, then -100 rotated by two.
  EXPECT_EQ(sums, (std::vector<float>{0.5F + 1 - 30, -2 + 10, 3 + 20 - 100}));
}

TEST(RowHash, WrapsAnIncompleteLastBlock) {
  const std::vector<float> row = {0, 0, 0, 7, 9};
  const std::vector<float> signs(5, 1);
  const std::vector<int64_t> shifts = {0, 2};
  std::vector<float> sums(3, 0);
  add_hashed_rows({.dims = 5, .width = 3, .signs = signs.data(), .shifts = shifts.data()},
                  row.data(), 1, sums.data());
  EXPECT_EQ(sums, (std::vector<float>{9, 0, 7}));
}

TEST(RowHash, GivesEachRowItsOwnSums) {
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  const std::vector<float> signs(3, 1);
  const std::vector<int64_t> shifts = {0, 1};
  std::vector<float> sums(4, 0);
  add_hashed_rows({.dims = 3, .width = 2, .signs = signs.data(), .shifts = shifts.data()},
                  rows.data(), 2, sums.data());
  EXPECT_EQ(sums, (std::vector<float>{1, 2 + 3, 4, 5 + 6}));
}

TEST(CentredRounding, IsThatOfLibTorchToTheLastBit) {
  for (const int64_t dims : {1, 15, 64, 1001}) {
    const auto rows = (3 * noise({7, dims}, 1)).to(torch::kFloat32);
    const auto mean = noise({dims}, 2).to(torch::kFloat32);
    EXPECT_TRUE(centred_rounding(rows, mean).equal((rows - mean).to(torch::kBFloat16))) << dims;
  }
}

TEST(CentredRounding, TakesTiesToEven) {
  const auto rows = torch::tensor({{1.00390625F, 1.01171875F}});  // halves between two neighbours
  const auto rounded = centred_rounding(rows, torch::zeros({2})).to(torch::kFloat64);
  expect_close(rounded[0], doubles({1.0, 1.015625}), 0);
}

TEST(CentredRounding, KeepsWhatIsNotFinite) {
  const auto infinity = std::numeric_limits<float>::infinity();
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const auto rounded =
      centred_rounding(torch::tensor({{infinity, -infinity, nan, -nan}}), torch::zeros({4}));
  EXPECT_TRUE(torch::isinf(rounded.slice(1, 0, 2)).all().item<bool>());
  EXPECT_TRUE(torch::isnan(rounded.slice(1, 2, 4)).all().item<bool>());
}

TEST(CentredRounding, RejectsWhatDoesNotFit) {
  EXPECT_EQ(error_of([] {
              centred_rounding(torch::zeros({2, 3}), torch::zeros({2}));
            }),
            "centred_rounding: needs float32 rows [count, dims] and mean [dims], got [2, 3] and "
            "[2]");
}

// Rows in `rank` random directions of falling weight, beside a little of all.
torch::Tensor low_rank_rows(int64_t rows, int64_t dims, int64_t rank, uint64_t seed) {
  const auto weights = torch::logspace(0, -2, rank, 10, torch::kFloat64);
  return (noise({rows, rank}, seed) * weights).matmul(noise({rank, dims}, 99)) / std::sqrt(dims);
}

TEST(FeatureSketch, LeavesShortRowsAsTheyAre) {
  const FeatureSketch sketch(5, 8, 0);
  EXPECT_TRUE(sketch.is_exact());
  EXPECT_EQ(sketch.width(), 5);
  const auto rows = noise({3, 5}, 0);
  EXPECT_TRUE(sketch.apply(rows).is_same(rows));
  EXPECT_TRUE(sketch.anchored(rows, 2).is_exact());
}

TEST(FeatureSketch, IsLinear) {
  const FeatureSketch sketch(1000, 64, 3);
  const auto a = noise({4, 1000}, 1);
  const auto b = noise({4, 1000}, 2);
  expect_close(sketch.apply(2 * a - b), 2 * sketch.apply(a) - sketch.apply(b), 1e-4);
}

TEST(FeatureSketch, IsTheSameForTheSameSeedOnly) {
  const auto rows = noise({2, 1000}, 1);
  EXPECT_TRUE(FeatureSketch(1000, 64, 3).apply(rows).equal(FeatureSketch(1000, 64, 3).apply(rows)));
  EXPECT_FALSE(
      FeatureSketch(1000, 64, 3).apply(rows).equal(FeatureSketch(1000, 64, 4).apply(rows)));
  EXPECT_TRUE(FeatureSketch(1000, 64, 3).equals(FeatureSketch(1000, 64, 3)));
  EXPECT_FALSE(FeatureSketch(1000, 64, 3).equals(FeatureSketch(1000, 64, 4)));
}

TEST(FeatureSketch, KeepsSquaredLengthsOnAverageWithTheErrorItStates) {
  constexpr int64_t kSketches = 400;
  constexpr int64_t kWidth = 50;
  const auto row = noise({1, 700}, 5);
  const double length = row.square().sum().item<double>();
  double sum = 0;
  double squares = 0;
  for (uint64_t seed = 0; seed < kSketches; ++seed) {
    const double ratio =
        FeatureSketch(700, kWidth, seed).apply(row).square().sum().item<double>() / length;
    sum += ratio;
    squares += ratio * ratio;
  }
  const double mean = sum / kSketches;
  const double deviation = std::sqrt(squares / kSketches - mean * mean);
  const double expected = std::sqrt(2.0 / kWidth);
  EXPECT_NEAR(mean, 1, 4 * expected / std::sqrt(kSketches));
  EXPECT_NEAR(deviation / expected, 1, 0.2);
}

// To the digits of bfloat16 where that is multiplied faster; a large mean costs none of them.
TEST(FeatureSketch, KeepsAnchoredDirections) {
  const auto rows = low_rank_rows(200, 3000, 10, 1) + 30;
  const auto sketch = FeatureSketch(3000, 100, 7).anchored(rows, 20);
  EXPECT_EQ(sketch.anchors(), 10);  // there is nothing in other directions
  EXPECT_EQ(sketch.width(), 100);
  const auto seen = sketch.apply(rows).to(torch::kFloat64);
  const auto expected = torch::linalg_svdvals(rows - rows.mean(0)).narrow(0, 0, 10);
  const auto actual = torch::linalg_svdvals(seen - seen.mean(0)).narrow(0, 0, 10);
  const double bound = sketch.has_rounded_anchors() ? 1e-3 : 1e-4;
  EXPECT_LT((actual / expected - 1).abs().max().item<double>(), bound);
  // Without anchors the same size is off by percents: the test can fail.
  const auto plain = torch::linalg_svdvals(
      FeatureSketch(3000, 100, 7).apply(rows - rows.mean(0)).to(torch::kFloat64));
  EXPECT_GT((plain.narrow(0, 0, 10) / expected - 1).abs().max().item<double>(), 1e-2);
}

TEST(FeatureSketch, EnlargedHasTheSameAnchors) {
  const auto rows = low_rank_rows(50, 3000, 10, 1);
  const auto small = FeatureSketch(3000, 100, 7).anchored(rows, 5);
  const auto large = small.enlarged(400);
  EXPECT_EQ(large.width(), 400);
  EXPECT_EQ(large.anchors(), 5);
  expect_close(large.apply(rows).narrow(1, 0, 5), small.apply(rows).narrow(1, 0, 5), 1e-6);
  EXPECT_TRUE(small.enlarged(4000).is_exact());
  EXPECT_FALSE(small.equals(large));
}

TEST(FeatureSketch, OfASampleThatDoesNotVaryHasNoAnchors) {
  const FeatureSketch sketch(3000, 100, 7);
  const auto anchored = sketch.anchored(torch::ones({20, 3000}), 5);
  EXPECT_EQ(anchored.anchors(), 0);
  EXPECT_TRUE(anchored.equals(sketch));
}

TEST(FeatureSketch, RejectsRowsOfAnotherLength) {
  const FeatureSketch sketch(1000, 64, 3);
  EXPECT_EQ(error_of([&] {
              sketch.apply(torch::zeros({2, 999}));
            }),
            "FeatureSketch: rows must be [rows, 1000], got [2, 999]");
  EXPECT_EQ(error_of([&] {
              sketch.anchored(torch::zeros({2, 999}), 1);
            }),
            "FeatureSketch: the sample must be [rows, 1000], got [2, 999]");
  EXPECT_EQ(error_of([] { FeatureSketch(0, 64, 3); }),
            "FeatureSketch: dims and size must be above 0, got 0 and 64");
}

}  // namespace kelvin::feature_sketch_test
