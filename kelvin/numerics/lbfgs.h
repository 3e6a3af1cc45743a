#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

namespace kelvin {

struct LbfgsOptions {
  int64_t max_iterations = 200;
  double tolerance = 1e-5;  // stops when no entry of the gradient exceeds it
  // A step is remembered only if its product with the change of the gradient exceeds this; what is
  // below is rounding and would make the estimate of the Hessian indefinite.
  double least_curvature = 1e-12;
  // Of the value, relative: next to the minimum, where values differ by no more than this, a step
  // is good if it shortens the gradient.  0: values alone decide.
  double rounding = 0;
};

struct LbfgsResult {
  torch::Tensor parameters;
  torch::Tensor gradient;
  double value = 0;
  int64_t iterations = 0;
  bool converged = false;
};

// The value at `parameters`; puts the gradient there into `gradient`.
using DifferentiableFunction =
    std::function<double(const torch::Tensor& parameters, torch::Tensor& gradient)>;
// A symmetric, positive map that does to a gradient roughly what the inverse Hessian would.
using InverseHessianGuess = std::function<torch::Tensor(const torch::Tensor& gradient)>;

// Minimises a convex function by preconditioned L-BFGS with a backtracking line search:
// deterministic, no rate to tune.  A value that is not finite at the start comes back as it is.
LbfgsResult lbfgs_minimum(const DifferentiableFunction& function, const torch::Tensor& start,
                          const InverseHessianGuess& guess, const LbfgsOptions& options = {});

}  // namespace kelvin
