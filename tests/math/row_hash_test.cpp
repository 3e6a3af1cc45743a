#include "kelvin/math/row_hash.h"

#include <gtest/gtest.h>

#include <vector>

namespace kelvin {
namespace {

TEST(RowHash, AddsRotatedBlocksWithTheirSigns) {
  const std::vector<float> row = {1, 2, 3, 10, 20, 30, 100};
  const std::vector<float> signs = {1, -1, 1, 1, 1, -1, -1};
  const std::vector<int64_t> shifts = {0, 1, 2};
  std::vector<float> sums = {0.5, 0, 0};
  add_hashed_rows({.dims = 7, .width = 3, .signs = signs.data(), .shifts = shifts.data()},
                  row.data(), 1, sums.data());
  // 1 -2 3, then 10 20 -30 rotated by one, then -100 rotated by two.
  EXPECT_EQ(sums, (std::vector<float>{0.5F + 1 - 30, -2 + 10, 3 + 20 - 100}));
}

TEST(RowHash, WrapsAnIncompleteLastBlock) {
  const std::vector<float> row = {0, 0, 0, 7, 9};
  const std::vector<float> signs(5, 1);
  const std::vector<int64_t> shifts = {0, 2};
  std::vector<float> sums(3, 0);
  add_hashed_rows({.dims = 5, .width = 3, .signs = signs.data(), .shifts = shifts.data()},
                  row.data(), 1, sums.data());
  EXPECT_EQ(sums, (std::vector<float>{9, 0, 7}));
}

TEST(RowHash, GivesEachRowItsOwnSums) {
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  const std::vector<float> signs(3, 1);
  const std::vector<int64_t> shifts = {0, 1};
  std::vector<float> sums(4, 0);
  add_hashed_rows({.dims = 3, .width = 2, .signs = signs.data(), .shifts = shifts.data()},
                  rows.data(), 2, sums.data());
  EXPECT_EQ(sums, (std::vector<float>{1, 2 + 3, 4, 5 + 6}));
}

}  // namespace
}  // namespace kelvin
