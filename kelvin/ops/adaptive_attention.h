#pragma once

#include <torch/types.h>

#include "kelvin/ops/adaptive_beta.h"

namespace kelvin {

struct AdaptiveAttentionOptions {
  AdaptiveSoftmaxOptions softmax = {};
  double scale = 0;         // of products of queries and keys; 0: one over the root of the width
  bool is_causal = false;   // whether a query sees no key behind the one of its own place
  torch::Tensor mask = {};  // booleans that expand to [samples, heads, queries, keys]: true where
                            // a query sees a key; undefined: everywhere
};

// adaptive_softmax(scale q k^T) v of queries [samples, heads, queries, width], keys [samples,
// heads, keys, width] and values [samples, heads, keys, value width], of one floating type.  On the
// CPU in float32 and bfloat16 the matrix of weights is never in memory; half precision is computed
// in single.  A query that sees no key gets zeros.  Differentiable once by the kernel, with
// reference ops as often as wanted.
torch::Tensor adaptive_attention(const torch::Tensor& queries, const torch::Tensor& keys,
                                 const torch::Tensor& values,
                                 const AdaptiveAttentionOptions& options = {});

}  // namespace kelvin
