#include "kelvin/numerics/neural_collapse.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <string>

#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::neural_collapse_test {

torch::Tensor gram_of(const torch::Tensor& rows) { return rows.matmul(rows.t()); }

// K vertices of a regular simplex around 0, as rows.
torch::Tensor simplex(int64_t classes) {
  return torch::eye(classes, torch::kFloat64) - 1.0 / static_cast<double>(classes);
}

torch::Tensor diagonal(const std::vector<double>& values) { return torch::diag(doubles(values)); }

TEST(SimplexEtf, IsTheNormalisedGramMatrixOfASimplex) {
  for (const int64_t classes : {2, 3, 10}) {
    const auto gram = gram_of(7 * simplex(classes));
    expect_close(simplex_etf(classes), gram / gram.norm(), 1e-15);
    EXPECT_NEAR(simplex_etf(classes).norm().item<double>(), 1, 1e-14);
  }
}

TEST(SimplexEtf, NeedsTwoClasses) {
  EXPECT_EQ(error_of([] { simplex_etf(1); }), "simplex_etf: needs at least 2 classes, got 1");
}

TEST(EtfError, IsZeroOfASimplexOfAnySizeAndTurn) {
  const auto rotation = std::get<0>(torch::linalg_qr(noise({12, 5}, 1)));
  EXPECT_NEAR(*etf_error(gram_of(simplex(5).matmul(rotation.t()) * 1e-6)), 0, 1e-14);
}

TEST(EtfError, OfOrthogonalVectorsIsKnown) {
  for (const double classes : {2.0, 3.0, 10.0}) {
    const auto gram = 3 * torch::eye(static_cast<int64_t>(classes), torch::kFloat64);
    EXPECT_NEAR(*etf_error(gram), std::sqrt(2 - 2 * std::sqrt((classes - 1) / classes)), 1e-14);
  }
}

TEST(Equinorm, IsTheRelativeSpreadOfLengths) {
  EXPECT_NEAR(*equinorm(diagonal({1, 4, 9})), 0.5, 1e-15);
  EXPECT_EQ(*equinorm(diagonal({4, 4, 4})), 0);
  EXPECT_NEAR(*equinorm(diagonal({0, 4})), std::sqrt(2), 1e-15);
}

TEST(Equiangularity, IsTheDistanceOfCosinesToThoseOfASimplex) {
  EXPECT_NEAR(*equiangularity(gram_of(simplex(4))), 0, 1e-15);
  EXPECT_NEAR(*equiangularity(diagonal({1, 4, 9})), 0.5, 1e-15);
  // Above and below do not cancel: cosines 0, 0 and -1, of a simplex -1/2.
  const auto rows = torch::tensor({{1.0, 0.0}, {-2.0, 0.0}, {0.0, 3.0}}, torch::kFloat64);
  EXPECT_NEAR(*equiangularity(gram_of(rows)), 0.5, 1e-15);
}

TEST(DistanceVariance, OfDirectionsInAPlaneIsKnown) {
  const auto rows = torch::tensor({{1.0, 0.0}, {0.0, 2.0}, {-3.0, 0.0}}, torch::kFloat64);
  // Distances sqrt 2, sqrt 2 and 2: two thirds of a third of the squared gap.
  const auto variance = [](double gap) { return 2.0 / 9 * gap * gap; };
  EXPECT_NEAR(*distance_variance(gram_of(rows)), variance(2 - std::sqrt(2)), 1e-14);
  EXPECT_NEAR(*log_distance_variance(gram_of(rows)), variance(std::log(2) / 2), 1e-14);
  EXPECT_NEAR(*distance_variance(gram_of(simplex(6))), 0, 1e-28);
  EXPECT_NEAR(*log_distance_variance(gram_of(simplex(6))), 0, 1e-28);
}

TEST(RieszVariance, OfDirectionsInAPlaneIsKnown) {
  const auto rows = torch::tensor({{1.0, 0.0}, {0.0, 2.0}, {-3.0, 0.0}}, torch::kFloat64);
  const auto variance = [](double gap) { return 2.0 / 9 * gap * gap; };
  // Distances sqrt 2, sqrt 2 and 2, to the powers 1, 0, -1 and -2.
  EXPECT_NEAR(*riesz_variance(gram_of(rows), 1), variance(2 - std::sqrt(2)), 1e-14);
  EXPECT_EQ(*riesz_variance(gram_of(rows), 2), 0);
  EXPECT_NEAR(*riesz_variance(gram_of(rows), 3), variance(std::sqrt(0.5) - 0.5), 1e-14);
  EXPECT_NEAR(*riesz_variance(gram_of(rows), 4), variance(0.25), 1e-14);
  EXPECT_NEAR(*riesz_variance(gram_of(simplex(6)), 64), 0, 1e-28);
  // 2^-510 fits, its square does not.
  EXPECT_FALSE(riesz_variance(gram_of(rows), 512).has_value());
}

TEST(TraceOfWholeRatio, InvertsWhateverThereIs) {
  EXPECT_NEAR(*trace_of_whole_ratio(diagonal({1, 6}), doubles({2, 3})), 2.5, 1e-15);
  EXPECT_NEAR(*trace_of_whole_ratio(diagonal({1, 6e-13}), doubles({2, 1e-13})), 6.5, 1e-12);
  // What lies across counts for nothing.
  const auto within = torch::tensor({{1.0, 9.0}, {9.0, 6.0}}, torch::kFloat64);
  EXPECT_NEAR(*trace_of_whole_ratio(within, doubles({2, 3})), 2.5, 1e-15);
}

TEST(TraceOfRatio, IsThatOfTheQuotientOfDiagonals) {
  EXPECT_NEAR(*trace_of_ratio(diagonal({1, 6}), diagonal({2, 3})), 2.5, 1e-15);
}

TEST(TraceOfRatio, LeavesOutWhatTheSecondDoesNotHave) {
  EXPECT_NEAR(*trace_of_ratio(diagonal({1, 6}), diagonal({2, 0})), 0.5, 1e-15);
  EXPECT_NEAR(*trace_of_ratio(diagonal({1, 6}), diagonal({2, 1e-13})), 0.5, 1e-15);
  EXPECT_NEAR(*trace_of_ratio(diagonal({1, 6}), diagonal({2, 3}), 0.9), 2, 1e-15);
}

TEST(ClassDistanceVariance, OfTwoClassesIsKnown) {
  const auto means = torch::tensor({{3.0, 0.0}, {0.0, 4.0}}, torch::kFloat64);
  EXPECT_NEAR(*class_distance_variance(doubles({1, 3}), gram_of(means)), 4.0 / 50, 1e-15);
  EXPECT_NEAR(*class_distance_variance(doubles({1, 3}), gram_of(means - 1.5)), 4.0 / 50, 1e-15);
  EXPECT_EQ(*class_distance_variance(doubles({0, 0}), gram_of(means)), 0);
}

TEST(DirectionDifference, IgnoresTheScaleOfBoth) {
  const auto a = noise({3, 4}, 2);
  EXPECT_NEAR(*direction_difference(a, 1e5 * a), 0, 1e-14);
  EXPECT_NEAR(*direction_difference(a, -a), 2, 1e-14);
  EXPECT_NEAR(*direction_difference(diagonal({1, 0}), diagonal({0, 9})), std::sqrt(2), 1e-15);
}

TEST(DualVariance, IsThatOfTheProductsOfRows) {
  EXPECT_NEAR(*dual_variance(diagonal({1, 2, 3}), diagonal({1, 1, 1})), 1, 1e-15);
  EXPECT_NEAR(*dual_variance(simplex(3), simplex(3)), 0, 1e-30);
}

TEST(MeanAbsoluteCosine, TakesEveryRowAlike) {
  const auto rows = torch::tensor({{2.0, 0.0}, {0.0, 5.0}, {-1.0, -1.0}}, torch::kFloat64);
  EXPECT_NEAR(*mean_absolute_cosine(rows, doubles({3, 0})), (1 + 0 + std::sqrt(0.5)) / 3, 1e-15);
}

TEST(NeuralCollapse, HasNoNumberWhereNoneIsDefined) {
  const auto one = torch::ones({1, 1}, torch::kFloat64);
  const auto zero = torch::zeros({3, 3}, torch::kFloat64);
  const auto with_zero_row = diagonal({1, 0, 1});
  const auto same = torch::ones({2, 2}, torch::kFloat64);
  for (const auto& value : {etf_error(one),
                            etf_error(zero),
                            equinorm(one),
                            equinorm(zero),
                            equiangularity(one),
                            equiangularity(with_zero_row),
                            distance_variance(one),
                            distance_variance(with_zero_row),
                            log_distance_variance(one),
                            log_distance_variance(same),
                            log_distance_variance(zero),
                            riesz_variance(one, 4),
                            riesz_variance(same, 4),
                            riesz_variance(with_zero_row, 4),
                            trace_of_whole_ratio(one, doubles({0})),
                            trace_of_ratio(one, 0 * one),
                            trace_of_ratio(zero.narrow(0, 0, 0), zero.narrow(0, 0, 0)),
                            class_distance_variance(doubles({1}), one),
                            class_distance_variance(doubles({1, 1}), same),
                            direction_difference(zero, with_zero_row),
                            direction_difference(with_zero_row, zero),
                            dual_variance(one, one),
                            mean_absolute_cosine(with_zero_row, doubles({1, 1, 1})),
                            mean_absolute_cosine(one, doubles({0}))}) {
    EXPECT_FALSE(value.has_value());
  }
  EXPECT_EQ(*distance_variance(same), 0);
}

TEST(NeuralCollapse, RejectsOtherShapes) {
  const auto flat = torch::ones({2, 3}, torch::kFloat64);
  EXPECT_EQ(error_of([&] { etf_error(flat); }), "etf_error: must be a square matrix, got [2, 3]");
  EXPECT_EQ(error_of([&] { equinorm(flat); }), "equinorm: must be a square matrix, got [2, 3]");
  EXPECT_EQ(error_of([&] { equiangularity(flat); }),
            "equiangularity: must be a square matrix, got [2, 3]");
  EXPECT_EQ(error_of([&] { direction_difference(flat, flat.t()); }),
            "direction_difference: must have the same shape, got [2, 3] and [3, 2]");
  EXPECT_EQ(error_of([&] {
              riesz_variance(diagonal({1, 1}), 0);
            }),
            "riesz_variance: vectors must have at least 1 entry, got 0");
  EXPECT_EQ(error_of([&] {
              trace_of_whole_ratio(diagonal({1, 1}), doubles({1}));
            }),
            "trace_of_whole_ratio: needs an entry for each of 2 directions, got [1]");
  EXPECT_EQ(error_of([&] {
              class_distance_variance(doubles({1}), diagonal({1, 1}));
            }),
            "class_distance_variance: needs a variance of each of 2 classes, got [1]");
  EXPECT_EQ(error_of([&] {
              mean_absolute_cosine(flat, doubles({1, 1}));
            }),
            "mean_absolute_cosine: rows and direction must be [rows, dims] and [dims], got [2, 3] "
            "and [2]");
}

TEST(NeuralCollapse, AgreesWithNumPyOnRandomMatrices) {
  const auto means = noise({7, 5}, 10);
  const auto weight = noise({7, 5}, 11);
  const auto within = gram_of(noise({5, 9}, 12));
  const auto variances = noise({7}, 13).square();
  const auto expected =
      oracle(R"(
M, W, S, v = x["means"], x["weight"], x["within"], x["variances"]
K = len(M)
etf = (np.eye(K) - np.ones((K, K)) / K) / np.sqrt(K - 1)
unit = M / np.linalg.norm(M, axis=1, keepdims=True)
pairs = [(i, j) for i in range(K) for j in range(K) if i < j]
dist = np.array([np.linalg.norm(unit[i] - unit[j]) for i, j in pairs])
norms = np.linalg.norm(M, axis=1)
out["etf"] = np.linalg.norm(M @ M.T / np.linalg.norm(M @ M.T) - etf)
out["dual"] = np.linalg.norm(W @ M.T / np.linalg.norm(W @ M.T) - etf)
out["equinorm"] = norms.std(ddof=1) / norms.mean()
out["angles"] = np.mean([abs(unit[i] @ unit[j] + 1 / (K - 1)) for i, j in pairs])
out["distances"] = dist.var()
out["logs"] = np.log(1 / dist).var()
out["riesz"] = (1 / dist ** 3).var()
out["trace"] = np.trace(S @ np.linalg.pinv(M.T @ M))
out["cdnv"] = np.mean([(v[i] + v[j]) / 2 / np.sum((M[i] - M[j]) ** 2) for i, j in pairs])
out["variance"] = np.var([w @ m for w, m in zip(W, M)], ddof=1)
)",
             {{"means", means}, {"weight", weight}, {"within", within}, {"variances", variances}});
  const auto expect = [&](const std::string& name, const std::optional<double>& value) {
    const auto number = expected.at(name).item<double>();
    EXPECT_NEAR(*value, number, 1e-10 * std::abs(number)) << name;
  };
  const auto gram = gram_of(means);
  expect("etf", etf_error(gram));
  expect("dual", etf_error(weight.matmul(means.t())));
  expect("equinorm", equinorm(gram));
  expect("angles", equiangularity(gram));
  expect("distances", distance_variance(gram));
  expect("logs", log_distance_variance(gram));
  expect("riesz", riesz_variance(gram, 5));
  expect("trace", trace_of_ratio(within, means.t().matmul(means)));
  expect("cdnv", class_distance_variance(variances, gram));
  expect("variance", dual_variance(weight, means));
}

}  // namespace kelvin::neural_collapse_test
