#include "kelvin/math/class_sums.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace kelvin {
namespace {

TEST(AddClassSums, AddsWhatIsThere) {
  for (const int64_t dims : {1, 511, 512, 1300}) {
    const auto rows = noise({40, dims}, 1).to(torch::kFloat32);
    const auto labels = torch::arange(40).remainder(3);
    auto sums = torch::ones({4, dims}, torch::kFloat64);
    add_class_sums(rows, labels, sums);
    const auto expected =
        torch::ones({4, dims}, torch::kFloat64).index_add(0, labels, rows.to(torch::kFloat64));
    expect_close(sums, expected, 1e-12);
  }
}

TEST(AddClassSums, TakesRowsInAnyOrderInMemoryAndNone) {
  const auto rows = noise({5, 6}, 1).to(torch::kFloat32);
  auto sums = torch::zeros({1, 5}, torch::kFloat64);
  add_class_sums(rows.t(), torch::zeros({6}, torch::kInt64), sums);
  expect_close(sums[0], rows.to(torch::kFloat64).sum(1), 1e-12);
  add_class_sums(torch::zeros({0, 5}), torch::zeros({0}, torch::kInt64), sums);
  expect_close(sums[0], rows.to(torch::kFloat64).sum(1), 1e-12);
}

TEST(AddClassSums, KeepsAllDigitsOfDoubles) {
  const auto rows = noise({9, 4}, 1);
  auto sums = torch::zeros({1, 4}, torch::kFloat64);
  add_class_sums(rows, torch::zeros({9}, torch::kInt64), sums);
  expect_close(sums[0], rows.sum(0), 1e-14);
}

TEST(AddClassSums, RejectsWhatDoesNotFit) {
  auto sums = torch::zeros({2, 3}, torch::kFloat64);
  auto view = torch::zeros({3, 2}, torch::kFloat64).t();
  EXPECT_EQ(error_of([&] {
              add_class_sums(torch::zeros({1, 3}), torch::zeros({1}, torch::kInt64), view);
            }),
            "add_class_sums: sums must be float64 and contiguous");
  EXPECT_EQ(error_of([&] {
              add_class_sums(torch::zeros({1, 3}), torch::full({1}, 2, torch::kInt64), sums);
            }),
            "add_class_sums: labels must be in [0, 2)");
  EXPECT_EQ(error_of([&] {
              add_class_sums(torch::zeros({1, 4}), torch::zeros({1}, torch::kInt64), sums);
            }),
            "add_class_sums: rows and labels must be [rows, 3] and [rows], got [1, 4] and [1]");
}

}  // namespace
}  // namespace kelvin
