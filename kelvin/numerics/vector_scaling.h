#pragma once

#include <torch/types.h>

#include <cstdint>

namespace kelvin {

struct VectorScalingOptions {
  // Penalty l2 / 2 * (|a|^2 + |c|^2) on the mean NLL, where the scaled logits of class k are
  // a_k x_k + c_k and x_k are its logits with mean 0 and standard deviation 1.  Without one there
  // is no minimum if scaled logits can be always right, or if no sample is of some class.
  double l2 = 1e-6;
  int64_t max_iterations = 1000;
  double tolerance = 1e-8;  // stops when no entry of the gradient in a and c exceeds it
};

// Logits of each class times a scale plus a bias of its own (Guo and others, arXiv 1706.04599,
// section 4.2).  Unlike a temperature it can change which class is the highest.
struct VectorScaling {
  torch::Tensor scale;  // [classes]
  torch::Tensor bias;   // [classes], with mean 0: softmax ignores what all have in common
  double nll = 0;       // of softmax(logits * scale + bias) on the samples it was fitted on
  // The NLL is convex, so a vanishing gradient proves the minimum.
  double gradient = 0;  // its largest entry in a and c at the end, penalty included
  int64_t iterations = 0;
  bool converged = false;

  // In double precision.
  torch::Tensor scaled(const torch::Tensor& logits) const;
};

// Minimises mean NLL plus penalty by L-BFGS: deterministic.  logits [samples, classes] floating and
// finite, labels [samples] in [0, classes).
VectorScaling fit_vector_scaling(const torch::Tensor& logits, const torch::Tensor& labels,
                                 const VectorScalingOptions& options = {});

}  // namespace kelvin
