#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

namespace kelvin {

// The sum of x x^T over `count` rows x, [dims, dims] in float64.  rows(begin, end) gives some of
// them as [end - begin, dims] in float64; it is called on all cores at once, for blocks that stay
// in the caches.  The result does not depend on the number of cores.
torch::Tensor parallel_gram(int64_t count, int64_t dims,
                            const std::function<torch::Tensor(int64_t, int64_t)>& rows);

// Bytes that it takes while it works, its result included, blocks of rows not.
int64_t parallel_gram_bytes(int64_t count, int64_t dims);

}  // namespace kelvin
