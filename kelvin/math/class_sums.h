#pragma once

#include <torch/types.h>

namespace kelvin {

// Adds each row [dims] of `rows` to the row of float64 `sums` [classes, dims] that its label names,
// in place: one pass over the rows, of which no float64 copy is made if they are float32.
void add_class_sums(const torch::Tensor& rows, const torch::Tensor& labels, torch::Tensor& sums);

}  // namespace kelvin
