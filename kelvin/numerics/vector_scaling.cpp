#include "kelvin/numerics/vector_scaling.h"

#include <torch/types.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/numerics/lbfgs.h"
#include "kelvin/ops/cross_entropy.h"

namespace kelvin {
namespace {

constexpr const char* kVectorName = "fit_vector_scaling";
constexpr int64_t kVectorChunk = int64_t{1} << 18;  // logits at a time
constexpr int64_t kRound = 30;                      // steps before the Hessian is looked at again

// The objective over parameters [2, classes]: a and c of VectorScalingOptions.
class VectorObjective {
 public:
  VectorObjective(torch::Tensor logits, const torch::Tensor& labels, double l2)
      : logits_(std::move(logits)),
        labels_(labels.to(torch::kCPU, torch::kInt64).unsqueeze(1)),
        l2_(l2) {
    mean_ = torch::zeros({classes()}, torch::kFloat64);
    for_each_chunk([&](const torch::Tensor& rows, int64_t) { mean_ += rows.sum(0) / samples(); });
    auto variance = torch::zeros_like(mean_);
    for_each_chunk([&](const torch::Tensor& rows, int64_t) {
      variance += (rows - mean_).square().sum(0) / samples();
    });
    std_dev_ = variance.sqrt();
    check(torch::isfinite(std_dev_).all().item<bool>(), kVectorName,
          ": logits of a class differ by more than double precision can hold");
    // What a class does by rounding alone, next to its mean, is not scaled up.
    std_dev_ = std_dev_.where(std_dev_ > 1e-12 * mean_.abs(), torch::ones_like(mean_));
  }

  double operator()(const torch::Tensor& parameters, torch::Tensor& gradient) const {
    gradient = torch::zeros_like(parameters);
    const double nll = likelihood(parameters, &gradient);
    gradient += l2_ * parameters;
    return nll + 0.5 * l2_ * parameters.square().sum().item<double>();
  }

  // The inverse of the Hessian without what connects classes: of each class a 2 x 2 matrix over its
  // a and c, as [3, classes]: the two of the diagonal and the one beside it.  A class is unsure of
  // itself mostly at high logits of its own, so that a and c nearly do the same.
  torch::Tensor inverse_blocks(const torch::Tensor& parameters) const {
    auto sums = torch::zeros({3, classes()}, torch::kFloat64);
    for_each_chunk([&](const torch::Tensor& rows, int64_t) {
      const auto standardised = (rows - mean_) / std_dev_;
      const auto probabilities = torch::softmax(standardised * parameters[0] + parameters[1], 1);
      const auto spread = probabilities * (1 - probabilities) / samples();
      sums[0] += (spread * standardised.square()).sum(0);
      sums[1] += spread.sum(0);
      sums[2] += (spread * standardised).sum(0);
    });
    // A touch more on the diagonal: a class may be sure of itself everywhere.
    sums.narrow(0, 0, 2).add_(l2_ + 1e-10);
    const auto determinant = sums[0] * sums[1] - sums[2].square();
    return torch::stack({sums[1], sums[0], -sums[2]}) / determinant;
  }

  // Mean NLL without the penalty; adds its gradient.
  double likelihood(const torch::Tensor& parameters, torch::Tensor* gradient = nullptr) const {
    double sum = 0;
    for_each_chunk([&](const torch::Tensor& rows, int64_t first) {
      const auto standardised = (rows - mean_) / std_dev_;
      const auto label = labels_.slice(0, first, first + rows.size(0));
      const auto logs = torch::log_softmax(standardised * parameters[0] + parameters[1], 1);
      sum -= logs.gather(1, label).sum().item<double>();
      if (gradient == nullptr) return;
      auto errors = logs.exp();
      errors.scatter_add_(1, label, torch::full_like(label, -1, torch::kFloat64));
      errors /= samples();
      (*gradient)[0] += (errors * standardised).sum(0);
      (*gradient)[1] += errors.sum(0);
    });
    return sum / samples();
  }

  int64_t classes() const { return logits_.size(1); }
  const torch::Tensor& mean() const { return mean_; }
  const torch::Tensor& std_dev() const { return std_dev_; }

 private:
  double samples() const { return static_cast<double>(logits_.size(0)); }

  template <class Consume>
  void for_each_chunk(const Consume& consume) const {
    const auto rows = std::max<int64_t>(1, kVectorChunk / classes());
    for (int64_t first = 0; first < logits_.size(0); first += rows) {
      consume(logits_.slice(0, first, first + rows).to(torch::kCPU, torch::kFloat64), first);
    }
  }

  torch::Tensor logits_;
  torch::Tensor labels_;  // [samples, 1]
  double l2_;
  torch::Tensor mean_;     // [classes]
  torch::Tensor std_dev_;  // [classes]; 1 for a class whose logits are all the same
};

}  // namespace

torch::Tensor VectorScaling::scaled(const torch::Tensor& logits) const {
  return logits.to(torch::kFloat64) * scale + bias;
}

VectorScaling fit_vector_scaling(const torch::Tensor& logits, const torch::Tensor& labels,
                                 const VectorScalingOptions& options) {
  at::NoGradGuard no_grad;
  check_loss_arguments(kVectorName, logits, labels, torch::ones({1}));
  check(torch::isfinite(logits).all().item<bool>(), kVectorName,
        ": logits must be finite, have a NaN or an infinity");
  check(options.l2 >= 0, kVectorName, ": l2 must not be below 0, got ", options.l2);
  const VectorObjective objective(logits, labels, options.l2);
  VectorScaling fitted;
  LbfgsResult minimum;
  minimum.parameters = torch::zeros({2, objective.classes()}, torch::kFloat64);
  while (!fitted.converged && fitted.iterations < options.max_iterations) {
    const auto inverse = objective.inverse_blocks(minimum.parameters);
    minimum = lbfgs_minimum(
        [&](const torch::Tensor& parameters, torch::Tensor& gradient) {
          return objective(parameters, gradient);
        },
        minimum.parameters,
        [&](const torch::Tensor& gradient) {
          return inverse.narrow(0, 0, 2) * gradient + inverse[2] * gradient.flip(0);
        },
        {.max_iterations = std::min(kRound, options.max_iterations - fitted.iterations),
         .tolerance = options.tolerance,
         .least_curvature = 1e-24,
         .rounding = 1e-14});
    fitted.iterations += minimum.iterations;
    fitted.converged = minimum.converged;
    if (minimum.iterations == 0) break;  // no step is worth anything any more
  }
  fitted.scale = minimum.parameters[0] / objective.std_dev();
  const auto bias = minimum.parameters[1] - fitted.scale * objective.mean();
  fitted.bias = bias - bias.mean();
  fitted.nll = objective.likelihood(minimum.parameters);
  fitted.gradient = minimum.gradient.abs().max().item<double>();
  return fitted;
}

}  // namespace kelvin
