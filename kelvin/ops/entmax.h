#pragma once

#include <torch/types.h>

namespace kelvin {

// The maximiser p of <p, logits> + Tsallis entropy of order alpha over the simplex of the last
// dimension, for any alpha above 1: p = max((alpha - 1) logits - threshold, 0)^(1 / (alpha - 1)),
// where the threshold makes the sum 1.  Softmax is its limit at 1; sparsemax is alpha = 2.  A logit
// of -infinity gets exactly 0; every row needs one that is not.  Computed in double precision;
// differentiable once.
torch::Tensor alpha_entmax(const torch::Tensor& logits, double alpha);

// Throws unless alpha is a finite number above 1; `where` opens the message.
void check_alpha(const char* where, double alpha);

}  // namespace kelvin
