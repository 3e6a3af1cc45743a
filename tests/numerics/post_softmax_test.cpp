#include "kelvin/numerics/post_softmax.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>

#include "kelvin/ops/numerical_rank.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::post_softmax_test {

constexpr double kGamma = 1e-3;

TEST(LowRankMatrix, HasTheRankOfItsFactors) {
  for (const int64_t k : {1, 3, 5}) {
    const auto values = torch::linalg_svdvals(low_rank_matrix(20, k, 7));
    EXPECT_EQ(numerical_rank(values, 1e-10), k);
  }
}

TEST(LowRankMatrix, DependsOnItsSeedAlone) {
  EXPECT_TRUE(torch::equal(low_rank_matrix(6, 2, 3), low_rank_matrix(6, 2, 3)));
  EXPECT_FALSE(torch::equal(low_rank_matrix(6, 2, 3), low_rank_matrix(6, 2, 4)));
}

TEST(ColumnSoftmax, MakesEachColumnADistribution) {
  const auto columns = column_softmax(noise({5, 3}, 0));
  expect_close(columns.sum(0), torch::ones({3}, torch::kFloat64), 1e-12);
}

TEST(PostSoftmax, OfZerosIsOneUniformDirection) {
  const auto found = post_softmax(torch::zeros({4, 6}, torch::kFloat64), kGamma);
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.norm, 0);
  EXPECT_NEAR(found.column_cosine, 1, 1e-12);
  EXPECT_NEAR(found.top_weight, 0.25, 1e-12);
  EXPECT_EQ(found.distinct_argmaxes, 1);
}

TEST(PostSoftmax, OfALargeIdentityIsOneHot) {
  const auto found = post_softmax(1e4 * torch::eye(5, torch::kFloat64), kGamma);
  EXPECT_EQ(found.rank, 5);
  EXPECT_NEAR(found.column_cosine, 0, 1e-12);
  EXPECT_NEAR(found.top_weight, 1, 1e-12);
  EXPECT_EQ(found.distinct_argmaxes, 5);
}

TEST(PostSoftmax, EndsAtTheNumberOfDifferentArgmaxes) {
  // Rank 1: whichever sign a column has, its largest entry is in one of two rows.
  const auto found = post_softmax(1e7 * low_rank_matrix(30, 1, 1), kGamma);
  EXPECT_EQ(found.distinct_argmaxes, 2);
  EXPECT_EQ(found.rank, 2);
}

TEST(PostSoftmax, RisesAndFallsWithTheScale) {
  const auto matrix = low_rank_matrix(30, 2, 5);
  const auto rank = [&](double scale) { return post_softmax(scale * matrix, kGamma).rank; };
  EXPECT_LT(rank(0.1), rank(10));
  EXPECT_GT(rank(10), rank(1e5));
}

TEST(PostSoftmax, IgnoresAConstantAddedToAColumn) {
  const auto matrix = noise({6, 4}, 2).to(torch::kFloat64);
  const auto moved = matrix + doubles({100, -5, 0, 7});
  const auto a = post_softmax(matrix, kGamma);
  const auto b = post_softmax(moved, kGamma);
  EXPECT_EQ(a.rank, b.rank);
  EXPECT_NEAR(a.column_cosine, b.column_cosine, 1e-12);
}

TEST(PostSoftmax, HasTheMeanCosineOfNumPy) {
  const auto matrix = noise({7, 5}, 4).to(torch::kFloat64);
  const auto expected = oracle(
      "s = np.exp(x['m']); s = s / s.sum(0); u = s / np.linalg.norm(s, axis=0); g = u.T @ u;"
      "out['cosine'] = np.array([g[~np.eye(5, dtype=bool)].mean()])",
      {{"m", matrix}});
  EXPECT_NEAR(post_softmax(matrix, kGamma).column_cosine, expected.at("cosine").item<double>(),
              1e-12);
}

TEST(PostSoftmax, RejectsWhatIsNoMatrixOfNumbers) {
  EXPECT_EQ(error_of([] {
              post_softmax(torch::zeros({3, 1}), kGamma);
            }),
            "post_softmax: needs a matrix of at least two columns, got [3, 1]");
  EXPECT_EQ(error_of([] {
              post_softmax(torch::zeros({3, 3}), 1);
            }),
            "post_softmax: gamma must be in (0, 1), got 1");
  EXPECT_EQ(error_of([] {
              post_softmax(torch::full({2, 2}, std::numeric_limits<double>::quiet_NaN()), kGamma);
            }),
            "post_softmax: the matrix must be finite");
  EXPECT_EQ(error_of([] { column_softmax(torch::zeros({3})); }),
            "column_softmax: needs a matrix, got [3]");
  EXPECT_EQ(error_of([] { low_rank_matrix(0, 1, 0); }),
            "low_rank_matrix: n and k must be at least 1, got 0 and 1");
}

}  // namespace kelvin::post_softmax_test
