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

// One set of samples that is fitted several times, with different penalties.
// features [samples, dims] floating, labels [samples] in [0, classes).
class LogisticRegression {
 public:
  LogisticRegression(const torch::Tensor& features, const torch::Tensor& labels, int64_t classes);

  // Goes on with more samples; the first rows are those it has.
  void extend_to(const torch::Tensor& features, const torch::Tensor& labels);

  // Minimises the mean cross-entropy plus penalty by preconditioned L-BFGS with a
  // backtracking line search, from zero or from `start`: deterministic, no rate to tune.
  LinearClassifier fit(const LogisticRegressionOptions& options = {},
                       const LinearClassifier* start = nullptr) const;

 private:
  void check_samples() const;
  // [dims + 1, dims + 1] float64, sums of products of features from row `first` on; the last is 1.
  torch::Tensor products_from(int64_t first) const;
  torch::Tensor bound_inverse(double l2) const;

  torch::Tensor features_;
  torch::Tensor labels_;
  int64_t classes_;
  torch::Tensor products_;
};

// The same for one fit.
LinearClassifier fit_logistic_regression(const torch::Tensor& features, const torch::Tensor& labels,
                                         int64_t classes,
                                         const LogisticRegressionOptions& options = {},
                                         const LinearClassifier* start = nullptr);

}  // namespace kelvin
