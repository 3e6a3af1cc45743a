#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

namespace kelvin {

// Adds the lower half of rows^T rows, for rows [count, dims], to that of `sum` [dims, dims], of the
// same type: half the multiplications of a product that does not know its result is symmetric. What
// lies above the diagonal is left undefined.
void add_lower_product(const torch::Tensor& rows, const torch::Tensor& sum);

// Copies what lies below the diagonal above it, in place.
void mirror_lower(const torch::Tensor& matrix);

// The sum of x x^T over `count` rows x, [dims, dims] in float64.  rows(begin, end) gives some of
// them as [end - begin, dims] in float64; it is called on all cores at once, for blocks that stay
// in the caches.  The result does not depend on the number of cores.
torch::Tensor parallel_gram(int64_t count, int64_t dims,
                            const std::function<torch::Tensor(int64_t, int64_t)>& rows);

// Bytes that it takes while it works, its result included, blocks of rows not.
int64_t parallel_gram_bytes(int64_t count, int64_t dims);

}  // namespace kelvin
