#pragma once

#include <torch/types.h>

#include <cstdint>

#include "kelvin/math/streamed_regression.h"

namespace kelvin {

struct AdamOptions {
  int64_t classes = 0;
  double rate = 1e-3;
  double first_decay = 0.9;
  double second_decay = 0.999;
  double epsilon = 1e-8;
  uint64_t seed = 0;  // of the first weights, uniform within 1 / sqrt(dims)
};

// Multinomial logistic regression by Adam (arXiv 1412.6980) at a constant rate, on the features as
// they are, without a penalty.
class AdamRegression : public StreamedRegression {
 public:
  explicit AdamRegression(const AdamOptions& options);

  void train(const Minibatch& batch) override;
  void end_pass() override {}
  LinearClassifier classifier() const override;

  // Bytes of a classifier of so many features while it is trained.
  static int64_t memory(const AdamOptions& options, int64_t dims);

 private:
  struct Parameter {
    torch::Tensor value;
    torch::Tensor first;   // moving averages of the gradient
    torch::Tensor second;  // and of its square
  };

  void begin(int64_t dims);
  void update(Parameter& parameter, const torch::Tensor& gradient) const;

  AdamOptions options_;
  Parameter weight_;
  Parameter bias_;
  int64_t steps_ = 0;
};

}  // namespace kelvin
