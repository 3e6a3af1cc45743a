#pragma once

#include <torch/types.h>

#include <cstdint>

namespace kelvin {

struct LogisticRegressionOptions {
  double l2 = 1e-3;  // penalty l2 / 2 * |W|^2 on the mean loss; the bias is free
  int64_t max_iterations = 200;
  double tolerance = 1e-5;  // stops when no entry of the gradient exceeds it
};

// A linear classifier: scores = features W^T + bias.
struct LinearClassifier {
  torch::Tensor weight;  // [classes, dims]
  torch::Tensor bias;    // [classes]
  int64_t iterations = 0;
  bool converged = false;

  torch::Tensor scores(const torch::Tensor& features) const;
};

// Minimises the mean cross-entropy plus penalty by preconditioned L-BFGS with a
// backtracking line search, from zero or from `start`: deterministic, no rate to tune.
// features [samples, dims] floating, labels [samples] in [0, classes).
LinearClassifier fit_logistic_regression(const torch::Tensor& features, const torch::Tensor& labels,
                                         int64_t classes,
                                         const LogisticRegressionOptions& options = {},
                                         const LinearClassifier* start = nullptr);

}  // namespace kelvin
