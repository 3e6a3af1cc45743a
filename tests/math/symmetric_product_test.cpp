#include "kelvin/math/symmetric_product.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

TEST(SymmetricProduct, IsThatOfAllRowsOnceMirrored) {
  for (const int64_t dims : {1, 127, 128, 129, 300}) {
    const auto rows = noise({40, dims}, 1);
    const auto sum = torch::zeros({dims, dims}, torch::kFloat64);
    add_lower_product(rows, sum);
    mirror_lower(sum);
    expect_close(sum, rows.t().matmul(rows), 1e-12);
  }
}

TEST(SymmetricProduct, IsAddedToWhatIsThere) {
  const auto rows = noise({30, 150}, 2);
  const auto before = noise({150, 150}, 3);
  const auto sum = before + before.t();
  const auto expected = sum + rows.t().matmul(rows);
  add_lower_product(rows, sum);
  mirror_lower(sum);
  expect_close(sum, expected, 1e-12);
}

TEST(SymmetricProduct, TakesTransposedRowsAndSingles) {
  const auto rows = noise({150, 30}, 4).to(torch::kFloat32);
  const auto sum = torch::zeros({150, 150}, torch::kFloat32);
  add_lower_product(rows.t(), sum);
  mirror_lower(sum);
  expect_close(sum, rows.matmul(rows.t()), 1e-4);
}

TEST(SymmetricProduct, MirrorsWhatLiesBelowTheDiagonal) {
  const auto matrix = torch::tensor({{1.0, 9.0}, {2.0, 3.0}}, torch::kFloat64);
  mirror_lower(matrix);
  expect_close(matrix, torch::tensor({{1.0, 2.0}, {2.0, 3.0}}, torch::kFloat64), 0);
}

TEST(SymmetricProduct, RejectsWhatDoesNotFit) {
  EXPECT_EQ(error_of([] {
              add_lower_product(torch::zeros({2, 3}), torch::zeros({3, 2}));
            }),
            "add_lower_product: the sum of rows [2, 3] must be square and as wide, is [3, 2]");
  EXPECT_EQ(error_of([] {
              mirror_lower(torch::zeros({3, 2}));
            }),
            "mirror_lower: the matrix must be square, is [3, 2]");
}

}  // namespace
}  // namespace kelvin
