#include "kelvin/ops/numerical_rank.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::numerical_rank_test {

TEST(NumericalRank, CountsValuesStrictlyAboveGammaTimesTheFirst) {
  const auto values = doubles({8, 4, 2, 1});
  EXPECT_EQ(numerical_rank(values, 0.25), 2);
  EXPECT_EQ(numerical_rank(values, 0.24), 3);
  EXPECT_EQ(numerical_rank(values, 0.1), 4);
  EXPECT_EQ(numerical_rank(values, 0.9), 1);
}

TEST(NumericalRank, RejectsAGammaOutsideZeroToOne) {
  for (const double gamma : {0.0, 1.0, -0.1, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(error_of([&] {
                  numerical_rank(doubles({1}), gamma);
                }).starts_with("numerical_rank: gamma must be in (0, 1), got "));
  }
}

TEST(NumericalRank, RejectsAnythingButAList) {
  EXPECT_EQ(error_of([] {
              numerical_rank(torch::zeros({2, 2}), 0.1);
            }),
            "numerical_rank: needs a list of singular values, got [2, 2]");
  EXPECT_EQ(error_of([] { numerical_rank(torch::zeros({0}), 0.1); }),
            "numerical_rank: needs a list of singular values, got [0]");
}

TEST(NumericalRanks, AreThoseOfEachMatrix) {
  auto matrices = torch::zeros({2, 3, 6, 5}, torch::kFloat64);
  for (int64_t rank = 0; rank < 6; ++rank) {
    matrices[rank / 3][rank % 3] = noise({6, rank}, 1).matmul(noise({rank, 5}, 2));
  }
  const auto ranks = numerical_ranks(matrices, 1e-9);
  EXPECT_TRUE(ranks.equal(torch::arange(6).view({2, 3})));
  EXPECT_TRUE(numerical_ranks(matrices.transpose(2, 3).to(torch::kFloat32), 1e-4).equal(ranks));
}

TEST(NumericalRanks, RejectWhatAreNoMatrices) {
  EXPECT_EQ(
      error_of([] { numerical_ranks(torch::zeros({3}), 0.1); }),
      "numerical_rank: needs matrices [..., rows, columns] with at least one number, got [3]");
  EXPECT_EQ(error_of([] {
              numerical_ranks(torch::zeros({2, 0}), 0.1);
            }),
            "numerical_rank: needs matrices [..., rows, columns] with at least one number, got [2, "
            "0]");
  EXPECT_EQ(error_of([] {
              numerical_ranks(torch::ones({2, 2}, torch::kInt64), 0.1);
            }),
            "numerical_rank: matrices must be of floating-point numbers, are long int");
  EXPECT_EQ(
      error_of([] {
        numerical_ranks(doubles({1, std::numeric_limits<double>::quiet_NaN()}).view({1, 2}), 0.1);
      }),
      "numerical_rank: matrices must be finite, got a NaN or an infinity");
}

}  // namespace kelvin::numerical_rank_test
