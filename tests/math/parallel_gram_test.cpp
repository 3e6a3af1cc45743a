#include "kelvin/math/parallel_gram.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

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

}  // namespace
}  // namespace kelvin
