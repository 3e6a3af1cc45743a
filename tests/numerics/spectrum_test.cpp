#include "kelvin/numerics/spectrum.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kelvin/ops/numerical_rank.h"
#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::spectrum_test {

GramAccumulator gram_of(const torch::Tensor& rows) {
  GramAccumulator accumulator(rows.size(1));
  accumulator.update(rows);
  return accumulator;
}

int64_t rank_of(const torch::Tensor& rows, double gamma = 1e-3) {
  return numerical_rank(gram_of(rows).singular_values(), gamma);
}

TEST(GramAccumulator, OfADiagonalMatrixHasItsEntriesInDescendingOrder) {
  const auto values = gram_of(torch::diag(doubles({2, -5, 0, 3}))).singular_values();
  expect_close(values, doubles({5, 3, 2, 0}), 1e-7);
}

TEST(GramAccumulator, HasTheSingularValuesOfNumPy) {
  const auto tall = noise({40, 7}, 0);
  const auto wide = noise({4, 9}, 1).to(torch::kFloat32);
  const auto expected =
      oracle("for name in x: out[name] = np.linalg.svd(x[name].astype(float), compute_uv=False)",
             {{"tall", tall}, {"wide", wide}});
  expect_close(gram_of(tall).singular_values(), expected.at("tall"), 1e-10);
  // As many as the smaller side has.
  expect_close(gram_of(wide).singular_values(), expected.at("wide"), 1e-10);
}

TEST(GramAccumulator, HasTheFrobeniusNormOfTheRows) {
  EXPECT_DOUBLE_EQ(gram_of(torch::tensor({{3.0, 4.0}, {0.0, 12.0}})).frobenius_norm(), 13);
}

TEST(GramAccumulator, GivesTheSameHoweverTheRowsAreSplit) {
  const auto rows = noise({30, 5}, 2);
  const auto whole = gram_of(rows);
  auto in_batches = gram_of(rows.slice(0, 0, 7));
  in_batches.update(rows.slice(0, 7, 12));
  in_batches.merge(gram_of(rows.slice(0, 12)));
  EXPECT_EQ(in_batches.rows(), 30);
  expect_close(in_batches.gram(), whole.gram(), 1e-12);
  expect_close(in_batches.singular_values(), whole.singular_values(), 1e-12);
}

TEST(GramAccumulator, ComesBackFromItsState) {
  auto first = gram_of(noise({3, 5}, 3));
  auto second = GramAccumulator::from_state(first.gram(), first.rows());
  first.update(noise({4, 5}, 4));  // a copy: leaves the second alone
  EXPECT_EQ(second.rows(), 3);
  EXPECT_EQ(second.singular_values().size(0), 3);
  second.update(noise({4, 5}, 4));
  expect_close(second.singular_values(), first.singular_values(), 0);
}

TEST(GramAccumulator, AddsUpInDoublePrecision) {
  // In single precision the second row would vanish beside the first.
  const auto rows = torch::tensor({{1e5F}, {1.F}});
  EXPECT_DOUBLE_EQ(gram_of(rows).gram().item<double>(), 1e10 + 1);
}

TEST(GramAccumulator, RejectsWhatDoesNotFit) {
  EXPECT_EQ(error_of([] { GramAccumulator(0); }), "GramAccumulator: dims must be above 0, got 0");
  GramAccumulator accumulator(3);
  EXPECT_EQ(error_of([&] {
              accumulator.update(torch::zeros({2, 4}));
            }),
            "GramAccumulator: rows must be [rows, 3], got [2, 4]");
  EXPECT_EQ(error_of([&] { accumulator.update(torch::zeros({3})); }),
            "GramAccumulator: rows must be [rows, 3], got [3]");
  EXPECT_EQ(error_of([&] { accumulator.merge(GramAccumulator(2)); }),
            "GramAccumulator: can merge only dims 3, got 2");
  EXPECT_EQ(error_of([&] { accumulator.singular_values(); }),
            "GramAccumulator: no rows were shown");
}

TEST(GramAccumulatorRank, OfAProductIsItsInnerDimension) {
  for (const int64_t inner : {1, 5, 12}) {
    EXPECT_EQ(rank_of(noise({64, inner}, 5).matmul(noise({inner, 20}, 6))), inner);
  }
}

TEST(GramAccumulatorRank, IgnoresTheScaleOfTheMatrix) {
  const auto rows = noise({50, 6}, 7) * torch::logspace(0, -5, 6, 10, torch::kFloat64);
  const auto rank = rank_of(rows);
  EXPECT_GT(rank, 1);
  EXPECT_LT(rank, 6);
  for (const double scale : {1e-20, 3.0, 1e20}) EXPECT_EQ(rank_of(scale * rows), rank) << scale;
}

TEST(GramAccumulatorRank, OfZerosIsZero) { EXPECT_EQ(rank_of(torch::zeros({4, 3})), 0); }

TEST(GramAccumulatorRank, OfOneRowIsOne) { EXPECT_EQ(rank_of(noise({1, 5}, 8)), 1); }

TEST(EffectiveRank, OfEqualValuesIsTheirNumber) {
  EXPECT_NEAR(effective_rank(torch::full({7}, 0.3)), 7, 1e-12);
  EXPECT_DOUBLE_EQ(effective_rank(doubles({5})), 1);
  EXPECT_NEAR(effective_rank(doubles({2, 2, 0, 0})), 2, 1e-12);
}

TEST(EffectiveRank, IsTheExponentialOfTheEntropyOfTheShares) {
  // Shares 1/2, 1/4, 1/4: an entropy of 3/2 ln 2.
  EXPECT_NEAR(effective_rank(doubles({6, 3, 3})), std::pow(2, 1.5), 1e-12);
}

TEST(RankMe, OfEqualValuesIsNearlyTheirNumber) {
  EXPECT_NEAR(rankme(torch::full({7}, 0.3)), 7, 1e-5);
  EXPECT_NEAR(rankme(doubles({5})), 1, 1e-6);
}

TEST(RankMe, CountsZerosByTheNumberItAdds) {
  const double share = 0.5 + 1e-7;
  const double entropy = -2 * share * std::log(share) - 2 * 1e-7 * std::log(1e-7);
  EXPECT_NEAR(rankme(doubles({2, 2, 0, 0})), std::exp(entropy), 1e-12);
  EXPECT_GT(rankme(doubles({2, 2, 0, 0})), effective_rank(doubles({2, 2, 0, 0})) + 1e-6);
}

TEST(StableRank, IsTheSumOfSquaresOverTheLargestSquare) {
  EXPECT_DOUBLE_EQ(stable_rank(doubles({4, 2, 2, 1})), 1 + 0.25 + 0.25 + 1.0 / 16);
  EXPECT_DOUBLE_EQ(stable_rank(torch::full({7}, 2.0)), 7);
  EXPECT_DOUBLE_EQ(stable_rank(doubles({5, 0, 0})), 1);
}

TEST(ParticipationRatio, IsTheSquaredSumOfSquaresOverTheSumOfFourthPowers) {
  EXPECT_DOUBLE_EQ(participation_ratio(doubles({2, 1, 1})), 36.0 / 18);
  EXPECT_DOUBLE_EQ(participation_ratio(torch::full({7}, 2.0)), 7);
  EXPECT_DOUBLE_EQ(participation_ratio(doubles({5, 0, 0})), 1);
}

struct NamedRank {
  std::string name;
  double (*of)(const torch::Tensor&);
};

const std::vector<NamedRank> kRanks = {{"effective_rank", effective_rank},
                                       {"rankme", rankme},
                                       {"stable_rank", stable_rank},
                                       {"participation_ratio", participation_ratio}};

TEST(RanksWithoutThreshold, IgnoreScaleOrderAndPrecision) {
  const auto values = doubles({9, 4, 1, 0.5});
  for (const auto& [name, rank] : kRanks) {
    for (const double scale : {1e-150, 1e150}) {
      EXPECT_NEAR(rank(scale * values), rank(values), 1e-12) << name;
    }
    EXPECT_NEAR(rank(values.flip(0)), rank(values), 1e-12) << name;
    EXPECT_NEAR(rank(values.to(torch::kFloat32)), rank(values), 1e-12) << name;
  }
}

TEST(RanksWithoutThreshold, AreThoseOfNumPyOnAnyMatrix) {
  const auto tall = noise({50, 8}, 9) * torch::logspace(0, -3, 8, 10, torch::kFloat64);
  const auto wide = noise({6, 30}, 10);
  const auto expected = oracle(R"(
for name in x:
    s = np.linalg.svd(x[name], compute_uv=False)
    p = s / s.sum()
    l = s**2  # eigenvalues of the matrix times its transpose
    out[name] = np.array([np.exp(-np.sum(p * np.log(p))),
                          np.exp(-np.sum((p + 1e-7) * np.log(p + 1e-7))),
                          np.linalg.norm(x[name])**2 / np.linalg.norm(x[name], 2)**2,
                          l.sum()**2 / (l**2).sum()])
)",
                               {{"tall", tall}, {"wide", wide}});
  for (const auto& [key, matrix] : NamedTensors{{"tall", tall}, {"wide", wide}}) {
    const auto values = torch::linalg_svdvals(matrix);
    std::vector<double> ranks;
    for (const auto& [name, rank] : kRanks) ranks.push_back(rank(values));
    expect_close(doubles(ranks), expected.at(key), 1e-10);
  }
}

TEST(RanksWithoutThreshold, RejectZerosAndAnythingButAList) {
  for (const auto& [name, rank] : kRanks) {
    EXPECT_EQ(error_of([&] { rank(torch::zeros({3})); }),
              name + ": needs a singular value above 0, got none");
    EXPECT_EQ(error_of([&] {
                rank(torch::ones({3, 1}));
              }),
              name + ": needs a list of singular values, got [3, 1]");
    EXPECT_EQ(error_of([&] { rank(torch::ones({0})); }),
              name + ": needs a list of singular values, got [0]");
  }
}

}  // namespace kelvin::spectrum_test
