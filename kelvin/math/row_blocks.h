#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

namespace kelvin {

// Calls work(begin, end) for blocks of rows that stay in the caches and together are all of
// `count`, on all cores, each block on one.
void for_row_blocks(int64_t count, const std::function<void(int64_t, int64_t)>& work);

// One float64 number per row, without gradients: numbers(begin, end) gives those of a block.
torch::Tensor row_numbers(int64_t count,
                          const std::function<torch::Tensor(int64_t, int64_t)>& numbers);

}  // namespace kelvin
