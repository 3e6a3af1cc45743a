#include "kelvin/math/row_blocks.h"

#include <torch/types.h>

#include <algorithm>

#include "kelvin/math/independent_work.h"

namespace kelvin {

void for_row_blocks(int64_t count, const std::function<void(int64_t, int64_t)>& work) {
  constexpr int64_t kRows = 512;
  for_each_independent((count + kRows - 1) / kRows, [&](int64_t block) {
    work(block * kRows, std::min((block + 1) * kRows, count));
  });
}

torch::Tensor row_numbers(int64_t count,
                          const std::function<torch::Tensor(int64_t, int64_t)>& numbers) {
  auto result = torch::empty({count}, torch::kFloat64);
  for_row_blocks(count, [&](int64_t begin, int64_t end) {
    result.slice(0, begin, end).copy_(numbers(begin, end));
  });
  return result;
}

}  // namespace kelvin
