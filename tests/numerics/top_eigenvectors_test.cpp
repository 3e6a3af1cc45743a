#include "kelvin/numerics/top_eigenvectors.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>

#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::top_eigenvectors_test {

// Iterates even where all eigenvectors would be faster.
constexpr TopEigenvectorsOptions kIterate = {.all_up_to = 64};

torch::Tensor rotation(int64_t dims, uint64_t seed) {
  return std::get<0>(torch::linalg_qr(noise({dims, dims}, seed)));
}

torch::Tensor matrix_of(const torch::Tensor& values, const torch::Tensor& vectors) {
  return (vectors * values).matmul(vectors.t());
}

torch::Tensor projector(const torch::Tensor& vectors) { return vectors.matmul(vectors.t()); }

// The vectors are those of `expected`, each up to its sign.
void expect_same_lines(const torch::Tensor& vectors, const torch::Tensor& expected,
                       double tolerance) {
  ASSERT_EQ(vectors.sizes(), expected.sizes());
  expect_close((vectors * expected).sum(0).abs(), torch::ones(expected.size(1)), tolerance);
}

void expect_residuals(const torch::Tensor& matrix, const TopEigenvectors& top) {
  const auto residuals = matrix.matmul(top.vectors) - top.vectors * top.values;
  EXPECT_LT(residuals.norm(2, 0).max().item<double>(), 1e-9 * top.values[0].item<double>());
  expect_close(top.vectors.t().matmul(top.vectors),
               torch::eye(top.vectors.size(1), torch::kFloat64), 1e-12);
}

TEST(TopEigenvectors, OfADiagonalMatrixAreUnitVectors) {
  for (const int64_t dims : {5, 400}) {
    auto diagonal = torch::linspace(0, 1, dims, torch::kFloat64);
    diagonal[3] = 7;
    diagonal[1] = 5;
    const auto top = top_eigenvectors(torch::diag(diagonal), 2, kIterate);
    expect_close(top.values, doubles({7, 5}), 1e-9);
    auto expected = torch::zeros({dims, 2}, torch::kFloat64);
    expected[3][0] = expected[1][1] = 1;
    expect_close(top.vectors.abs(), expected, 1e-9);
  }
}

TEST(TopEigenvectors, AreThoseOfAllEigenvectors) {
  const auto vectors = rotation(400, 1);
  const auto rows = noise({600, 400}, 2);
  const std::vector<torch::Tensor> matrices = {
      matrix_of(torch::logspace(0, -9, 400, 10, torch::kFloat64), vectors),
      matrix_of(torch::linspace(1e6, -1e6, 400, torch::kFloat64), vectors),
      // No gap anywhere: hard for any iteration.
      rows.t().matmul(rows)};
  for (const auto& matrix : matrices) {
    const auto top = top_eigenvectors(matrix, 15, kIterate);
    const auto [values, all] = torch::linalg_eigh(matrix);
    const auto scale = values[-1].item<double>();
    expect_close(top.values / scale, values.flip(0).slice(0, 0, 15) / scale, 1e-11);
    expect_same_lines(top.vectors, all.flip(1).slice(1, 0, 15), 1e-9);
    expect_residuals(matrix, top);
  }
}

TEST(TopEigenvectors, AreThoseOfSciPy) {
  const auto rows = noise({300, 500}, 3) * torch::logspace(0, -3, 500, 10, torch::kFloat64);
  const auto matrix = rows.t().matmul(rows);
  const auto expected = oracle(R"(
import scipy.linalg
values, vectors = scipy.linalg.eigh(x["matrix"], subset_by_index=[490, 499])
out["values"], out["vectors"] = values[::-1], np.ascontiguousarray(vectors[:, ::-1])
)",
                               {{"matrix", matrix}});
  const auto top = top_eigenvectors(matrix, 10, kIterate);
  const auto scale = top.values[0].item<double>();
  expect_close(top.values / scale, expected.at("values") / scale, 1e-11);
  expect_same_lines(top.vectors, expected.at("vectors"), 1e-9);
}

TEST(TopEigenvectors, SurviveARankBelowTheirNumber) {
  const auto vectors = rotation(400, 4);
  auto values = torch::zeros({400}, torch::kFloat64);
  values[0] = 3;
  values[1] = 1e-8;
  const auto matrix = matrix_of(values, vectors);
  const auto top = top_eigenvectors(matrix, 15, kIterate);
  expect_residuals(matrix, top);
  expect_close(top.values, values.slice(0, 0, 15), 1e-14);
  expect_same_lines(top.vectors.slice(1, 0, 2), vectors.slice(1, 0, 2), 1e-9);
}

TEST(TopEigenvectors, OfEqualValuesSpanTheirSpace) {
  const auto vectors = rotation(500, 5);
  auto values = torch::linspace(1, 0, 500, torch::kFloat64);
  values.slice(0, 0, 6) = 2;
  const auto top = top_eigenvectors(matrix_of(values, vectors), 6, kIterate);
  expect_close(projector(top.vectors), projector(vectors.slice(1, 0, 6)), 1e-9);
}

TEST(TopEigenvectors, OfZerosAreOrthonormal) {
  for (const int64_t dims : {4, 400}) {
    const auto top = top_eigenvectors(torch::zeros({dims, dims}), 3, kIterate);
    expect_close(top.values, doubles({0, 0, 0}), 0);
    expect_close(top.vectors.t().matmul(top.vectors), torch::eye(3), 1e-12);
  }
}

TEST(TopEigenvectors, AreTheSameForTheSameSeed) {
  const auto rows = noise({300, 400}, 6);
  const auto matrix = rows.t().matmul(rows);
  const auto first = top_eigenvectors(matrix, 4, {.seed = 1, .all_up_to = 64});
  const auto again = top_eigenvectors(matrix, 4, {.seed = 1, .all_up_to = 64});
  expect_close(again.vectors, first.vectors, 0);
  const auto other = top_eigenvectors(matrix, 4, {.seed = 2, .all_up_to = 64});
  expect_same_lines(other.vectors, first.vectors, 1e-9);
}

TEST(TopEigenvectors, TurnWithTheMatrixAndIgnoreItsScale) {
  const auto rows = noise({300, 400}, 7);
  const auto matrix = rows.t().matmul(rows);
  const auto turn = rotation(400, 8);
  const auto plain = top_eigenvectors(matrix, 5, kIterate);
  for (const double scale : {1e-200, 1.0, 1e200}) {
    const auto turned = top_eigenvectors(scale * turn.matmul(matrix).matmul(turn.t()), 5, kIterate);
    expect_close(turned.values / scale / plain.values, torch::ones({5}), 1e-11);
    expect_same_lines(turned.vectors, turn.matmul(plain.vectors), 1e-9);
  }
}

TEST(TopEigenvectors, FallBackToAllWhereStepsDoNotSuffice) {
  const auto rows = noise({600, 400}, 9);
  const auto matrix = rows.t().matmul(rows);
  const auto top = top_eigenvectors(matrix, 15, {.all_up_to = 64, .steps = 5});
  const auto [values, vectors] = torch::linalg_eigh(matrix);
  expect_close(top.values, values.flip(0).slice(0, 0, 15), 0);
  expect_close(top.vectors, vectors.flip(1).slice(1, 0, 15), 0);
}

TEST(TopEigenvectors, RejectsWhatHasNone) {
  EXPECT_EQ(error_of([] {
              top_eigenvectors(torch::zeros({3, 2}), 1);
            }),
            "top_eigenvectors: matrix must be square, got [3, 2]");
  for (const int64_t k : {0, 4}) {
    EXPECT_EQ(error_of([&] {
                top_eigenvectors(torch::zeros({3, 3}), k);
              }),
              "top_eigenvectors: k must be in [1, 3], got " + std::to_string(k));
  }
  EXPECT_EQ(error_of([] {
              top_eigenvectors(torch::full({2, 2}, std::numeric_limits<double>::quiet_NaN()), 1);
            }),
            "top_eigenvectors: matrix must be finite, has a NaN or an infinity");
}

}  // namespace kelvin::top_eigenvectors_test
