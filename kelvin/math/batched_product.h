#pragma once

#include <torch/types.h>

namespace kelvin {

// In which order the numbers of a batched product lie in memory.
enum class ProductOrder {
  matrices,  // one matrix after the other
  rows,      // rows of all matrices of a sample side by side, as the heads of a token are
};

// Whether batched_product computes this one: float32 matrices on a CPU that a BLAS can read where
// they lie.
bool suits_batched_product(const torch::Tensor& left, const torch::Tensor& right);

// factor * left right for each sample and head, [samples, heads, rows, terms] and [samples, heads,
// terms, columns] to [samples, heads, rows, columns], and its gradients.  Each core has matrices of
// its own, where LibTorch without MKL takes one after the other and copies those with gaps first.
torch::Tensor batched_product(const torch::Tensor& left, const torch::Tensor& right,
                              double factor = 1, ProductOrder order = ProductOrder::matrices);

}  // namespace kelvin
