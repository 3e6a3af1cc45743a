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

// Whether bfloat16_attention computes this: bfloat16 without gaps, at most 2048 tokens, heads as
// wide as a multiple of 32, on a CPU that multiplies bfloat16.
bool suits_bfloat16_attention(const torch::Tensor& qkv, int64_t heads);

// softmax(factor q k^T) v of `qkv` [samples, tokens, 3 * heads * width], heads side by side:
// [samples, tokens, heads * width].  Everything but products is float32, and attention weights are
// rounded only to be multiplied.
torch::Tensor bfloat16_attention(const torch::Tensor& qkv, int64_t heads, double factor);

}  // namespace kelvin
