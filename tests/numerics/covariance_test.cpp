#include "kelvin/numerics/covariance.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/oracle.h"
#include "tests/support/tensors.h"

namespace kelvin::covariance_test {

using Products = CovarianceAccumulator::Products;

CovarianceAccumulator shown(const torch::Tensor& rows, int64_t batch) {
  CovarianceAccumulator covariance(rows.size(1));
  for (const auto& part : rows.split(batch)) covariance.update(part);
  return covariance;
}

TEST(Covariance, OfTwoPointsIsKnown) {
  auto covariance = shown(torch::tensor({{1.0, 5.0}, {3.0, 5.0}}, torch::kFloat64), 1);
  covariance.finish_block();
  expect_close(covariance.mean(), doubles({2, 5}), 0);
  expect_close(covariance.scatter(), torch::tensor({{2.0, 0.0}, {0.0, 0.0}}, torch::kFloat64), 0);
  expect_close(covariance.singular_values(), doubles({std::sqrt(2.0)}), 1e-15);
}

TEST(Covariance, IsThatOfNumPyAlsoFarFromTheOrigin) {
  // Across several blocks.
  const auto rows = noise({2500, 12}, 0) * torch::logspace(0, -3, 12, 10, torch::kFloat64) + 1e6;
  auto covariance = shown(rows, 300);
  const auto expected = oracle(R"(
centred = x["rows"] - x["rows"].mean(0)
out["scatter"] = centred.T @ centred
out["values"] = np.linalg.svd(centred, compute_uv=False)
)",
                               {{"rows", rows}});
  covariance.finish_block();
  const double scale = expected.at("scatter").abs().max().item<double>();
  expect_close(covariance.scatter(), expected.at("scatter"), 1e-9 * scale);
  const auto& values = expected.at("values");
  EXPECT_LT((covariance.singular_values() / values - 1).abs().max().item<double>(), 1e-6);
}

TEST(Covariance, DoesNotDependOnHowRowsAreSplitOrOrdered) {
  const auto rows = noise({2100, 7}, 1);
  const auto expected = shown(rows, 2100).singular_values();
  expect_close(shown(rows, 13).singular_values(), expected, 1e-10);
  expect_close(shown(rows.flip(0), 500).singular_values(), expected, 1e-10);
}

TEST(Covariance, IsThatOfTheWholeWhenHalvesAreMerged) {
  const auto rows = noise({1500, 7}, 1) + 3;
  auto merged = shown(rows.narrow(0, 0, 1100), 100);
  const auto second = shown(rows.narrow(0, 1100, 400), 100);
  merged.merge(second);
  EXPECT_EQ(merged.rows(), 1500);
  EXPECT_EQ(second.rows(), 400);
  expect_close(merged.singular_values(), shown(rows, 100).singular_values(), 1e-10);
  merged.merge(CovarianceAccumulator(7));
  EXPECT_EQ(merged.rows(), 1500);
}

TEST(Covariance, TurnsWithARotationAndGrowsWithAScale) {
  const auto rows = noise({300, 6}, 2);
  const auto rotation = std::get<0>(torch::linalg_qr(noise({6, 6}, 3)));
  const auto values = shown(rows, 100).singular_values();
  expect_close(shown(rows.matmul(rotation), 100).singular_values(), values, 1e-10);
  expect_close(shown(rows * 5, 100).singular_values(), values * 5, 1e-10);
}

TEST(Covariance, OfFewerRowsThanDimensionsHasOneValueLessThanRows) {
  const auto rows = noise({4, 9}, 2);
  const auto values = shown(rows, 4).singular_values();
  EXPECT_EQ(values.size(0), 3);
  expect_close(values, torch::linalg_svdvals(rows - rows.mean(0)).narrow(0, 0, 3), 1e-10);
  expect_close(shown(rows.narrow(0, 0, 1), 1).singular_values(), doubles({0}), 0);
}

TEST(Covariance, WithFastProductsIsGoodToSixDigits) {
  const auto rows = noise({3000, 20}, 4) + 100;
  CovarianceAccumulator fast(20, Products::fast);
  for (const auto& part : rows.split(256)) fast.update(part);
  const auto expected = shown(rows, 256).singular_values();
  EXPECT_LT((fast.singular_values() / expected - 1).abs().max().item<double>(), 1e-5);
}

TEST(Covariance, CopiesAreDeep) {
  auto first = shown(noise({10, 3}, 0), 10);
  first.finish_block();
  auto second = first;
  const auto before = first.scatter().clone();
  second.update(noise({10, 3}, 1));
  second.finish_block();
  expect_close(first.scatter(), before, 0);
  EXPECT_EQ(first.rows(), 10);
}

TEST(Covariance, RejectsWhatItCannotAdd) {
  CovarianceAccumulator covariance(3);
  EXPECT_EQ(error_of([&] { covariance.singular_values(); }),
            "CovarianceAccumulator: no rows were shown");
  EXPECT_EQ(error_of([&] {
              covariance.update(torch::zeros({2, 4}));
            }),
            "CovarianceAccumulator: rows must be [rows, 3], got [2, 4]");
  EXPECT_EQ(error_of([&] {
              covariance.update(torch::full({2, 3}, NAN));
            }),
            "CovarianceAccumulator: rows must be finite, got a NaN or an infinity");
  EXPECT_EQ(error_of([&] { covariance.merge(CovarianceAccumulator(4)); }),
            "CovarianceAccumulator: can merge only dims 3, got 4");
}

}  // namespace kelvin::covariance_test
