#include "kelvin/numerics/gram.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin::gram_test {

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

torch::Tensor gram_of(const torch::Tensor& rows) {
  return parallel_gram(rows.size(0), rows.size(1),
                       [&](int64_t begin, int64_t end) { return rows.slice(0, begin, end); });
}

TEST(ParallelGram, IsTheProductOfTheTransposedMatrixWithItself) {
  // Less than a block of rows and of columns, and several of them.
  for (const int64_t rows : {1, 511, 512, 20000}) {
    for (const int64_t dims : {1, 128, 131}) {
      const auto matrix = noise({rows, dims}, 0);
      const auto expected = matrix.t().matmul(matrix);
      const auto found = gram_of(matrix);
      expect_close(found, expected, 1e-12 * expected.abs().max().item<double>());
      EXPECT_TRUE(torch::equal(found, found.t()));
    }
  }
}

TEST(ParallelGram, DoesNotDependOnTheNumberOfThreads) {
  const auto matrix = noise({5000, 20}, 1);
  const auto all = gram_of(matrix);
  const auto threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = gram_of(matrix);
  at::set_num_threads(threads);
  EXPECT_TRUE(torch::equal(all, one));
}

TEST(ParallelGram, RecordsNoGradientsIfTheCallerDoesNot) {
  const auto matrix = noise({2000, 3}, 2).requires_grad_();
  const torch::NoGradGuard no_grad;
  EXPECT_FALSE(gram_of(matrix).requires_grad());
}

TEST(ParallelGram, OfNoRowsIsZero) {
  expect_close(gram_of(noise({0, 3}, 0)), torch::zeros({3, 3}), 0);
}

TEST(ParallelGram, RejectsNoDims) {
  EXPECT_EQ(error_of([] {
              gram_of(noise({3, 0}, 0));
            }),
            "parallel_gram: count must not be below 0 and dims above, got 3 and 0");
}

}  // namespace kelvin::gram_test
