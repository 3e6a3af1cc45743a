#include "kelvin/math/row_blocks.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"
#include "tests/support/threads.h"

namespace kelvin {
namespace {

TEST(RowBlocks, AreAllRowsOnce) {
  for (const int64_t count : {0, 1, 511, 512, 513, 5000}) {
    auto times = torch::zeros({count}, torch::kInt64);
    for_row_blocks(count, [&](int64_t begin, int64_t end) {
      ASSERT_LT(begin, end);
      times.slice(0, begin, end).add_(1);
    });
    EXPECT_TRUE((times == 1).all().item<bool>()) << count;
  }
}

// Copies of rows that record gradients into one tensor would race.
TEST(RowBlocks, GiveNumbersWithoutGradientsOfRowsThatHaveThem) {
  const ThreadCount count(2);
  const auto weight = torch::ones({4}, torch::kFloat64).set_requires_grad(true);
  const auto rows = noise({2048, 4}, 0);
  for (int i = 0; i < 300; ++i) {
    const auto found = row_numbers(
        2048, [&](int64_t begin, int64_t end) { return rows.slice(0, begin, end).matmul(weight); });
    ASSERT_FALSE(found.requires_grad());
    expect_close(found, rows.sum(1), 1e-14);
  }
}

TEST(RowBlocks, GiveTheNumbersInOrder) {
  const auto rows = noise({3000, 4}, 0);
  const auto found = row_numbers(
      3000, [&](int64_t begin, int64_t end) { return rows.slice(0, begin, end).sum(1); });
  EXPECT_EQ(found.scalar_type(), torch::kFloat64);
  expect_close(found, rows.sum(1), 1e-14);
  EXPECT_EQ(row_numbers(0, [&](int64_t, int64_t) { return torch::Tensor(); }).size(0), 0);
}

TEST(RowBlocks, AreWorkedOnInTheModeOfTheCaller) {
  const torch::InferenceMode inference;
  const auto rows = noise({3000, 4}, 0);
  const auto found = row_numbers(
      3000, [&](int64_t begin, int64_t end) { return rows.slice(0, begin, end).sum(1); });
  expect_close(found, rows.sum(1), 1e-14);
}

TEST(RowBlocks, PassOnErrors) {
  EXPECT_EQ(error_of([] {
              for_row_blocks(2000,
                             [](int64_t begin, int64_t) { check(begin < 1000, "from ", begin); });
            }).find("from "),
            0U);
}

}  // namespace
}  // namespace kelvin
