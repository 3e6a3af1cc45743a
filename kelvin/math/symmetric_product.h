#pragma once

#include <torch/types.h>

namespace kelvin {

// Adds the lower half of rows^T rows, for rows [count, dims], to that of `sum` [dims, dims], of the
// same type: half the multiplications of a product that does not know its result is symmetric. What
// lies above the diagonal is left undefined.
void add_lower_product(const torch::Tensor& rows, const torch::Tensor& sum);

// Copies what lies below the diagonal above it, in place.
void mirror_lower(const torch::Tensor& matrix);

}  // namespace kelvin
