#pragma once

#include <torch/types.h>

#include "kelvin/ops/adaptive_beta.h"

namespace kelvin {

// "softmax is not enough", arXiv 2410.01104: softmax(beta z) over the last dimension with z =
// logits / T and a beta for each row, which depends on the entropy of softmax(z) and is at least 1,
// so that rows become sharper.  A logit of -infinity gets exactly 0, a row of nothing else is all
// zeros, and a NaN or +infinity makes its whole row NaNs.  The type is that of the logits; half
// precision is computed in single.  Differentiable once, by a kernel on the CPU; with reference
// ops as often as wanted.
torch::Tensor adaptive_softmax(const torch::Tensor& logits,
                               const AdaptiveSoftmaxOptions& options = {});

// The same with what was seen on the way: one number for each row, [...] for logits [..., n], in
// float64 for logits of that type and float32 for all others; not differentiable.
struct AdaptiveSoftmaxValues {
  torch::Tensor probabilities = {};
  torch::Tensor entropies = {};    // of softmax(z), in nats
  torch::Tensor betas = {};        // by which z was multiplied
  torch::Tensor spreads = {};      // largest less smallest logit that is not masked
  torch::Tensor top_weights = {};  // largest probabilities of the result
};
AdaptiveSoftmaxValues adaptive_softmax_values(const torch::Tensor& logits,
                                              const AdaptiveSoftmaxOptions& options = {});

}  // namespace kelvin
