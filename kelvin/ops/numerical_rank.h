#pragma once

#include <torch/types.h>

#include <cstdint>

namespace kelvin {

// How many of the descending `singular_values` exceed gamma times the first; 0 if all are 0.
int64_t numerical_rank(const torch::Tensor& singular_values, double gamma);

// That of each matrix of [..., rows, columns] as it is, neither centred nor scaled: int64 [...].
// In double precision; not differentiable.
torch::Tensor numerical_ranks(const torch::Tensor& matrices, double gamma);

}  // namespace kelvin
