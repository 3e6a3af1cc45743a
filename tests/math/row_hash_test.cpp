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
  add_hashed_row({.dims = 7, .width = 3, .signs = signs.data(), .shifts = shifts.data()},
                 row.data(), sums.data());
  // 1 -2 3, then 10 20 -30 rotated by one, then -100 rotated by two.
  EXPECT_EQ(sums, (std::vector<float>{0.5F + 1 - 30, -2 + 10, 3 + 20 - 100}));
}

TEST(RowHash, WrapsAnIncompleteLastBlock) {
  const std::vector<float> row = {0, 0, 0, 7, 9};
  const std::vector<float> signs(5, 1);
  const std::vector<int64_t> shifts = {0, 2};
  std::vector<float> sums(3, 0);
  add_hashed_row({.dims = 5, .width = 3, .signs = signs.data(), .shifts = shifts.data()},
                 row.data(), sums.data());
  EXPECT_EQ(sums, (std::vector<float>{9, 0, 7}));
}

}  // namespace
}  // namespace kelvin
