#include "kelvin/numerics/lbfgs.h"

#include <torch/types.h>

#include <cmath>
#include <deque>
#include <utility>
#include <vector>

namespace kelvin {
namespace {

constexpr size_t kHistory = 10;
constexpr int kMaxHalvings = 30;
constexpr double kSufficientDecrease = 1e-4;

double inner_product(const torch::Tensor& a, const torch::Tensor& b) {
  return (a * b).sum(torch::kFloat64).item<double>();
}

double largest_entry(const torch::Tensor& gradient) { return gradient.abs().max().item<double>(); }

// The two-loop recursion over the last steps s and gradient changes y, around a
// fixed first guess of the inverse Hessian.
class InverseHessian {
 public:
  InverseHessian(const InverseHessianGuess& guess, double least_curvature)
      : guess_(guess), least_curvature_(least_curvature) {}

  torch::Tensor times(const torch::Tensor& gradient) const {
    auto direction = gradient.clone();
    std::vector<double> alphas(pairs_.size());
    for (size_t i = pairs_.size(); i-- > 0;) {
      alphas[i] = inner_product(pairs_[i].step, direction) / pairs_[i].curvature;
      direction.sub_(pairs_[i].change, alphas[i]);
    }
    direction = guess_(direction);
    if (!pairs_.empty()) {
      // The bound behind a guess is far too careful where the function is nearly flat.
      const auto& last = pairs_.back();
      direction.mul_(last.curvature / inner_product(last.change, guess_(last.change)));
    }
    for (size_t i = 0; i < pairs_.size(); ++i) {
      const double beta = inner_product(pairs_[i].change, direction) / pairs_[i].curvature;
      direction.add_(pairs_[i].step, alphas[i] - beta);
    }
    return direction;
  }

  void add(torch::Tensor step, torch::Tensor change) {
    const double curvature = inner_product(step, change);
    if (curvature <= least_curvature_) return;
    if (pairs_.size() == kHistory) pairs_.pop_front();
    pairs_.push_back({std::move(step), std::move(change), curvature});
  }

  void forget() { pairs_.clear(); }

 private:
  struct Pair {
    torch::Tensor step;
    torch::Tensor change;
    double curvature;
  };
  const InverseHessianGuess& guess_;
  double least_curvature_;
  std::deque<Pair> pairs_;
};

struct Point {
  torch::Tensor parameters;
  torch::Tensor gradient;
  double value = 0;
};

// Where the line search ended.
struct Step {
  Point next;
  bool is_good = false;
};

// Halves the step along `direction` until it is worth its length.
Step search_along(const torch::Tensor& direction, double slope, const Point& from,
                  const DifferentiableFunction& function, const LbfgsOptions& options) {
  Step step;
  double size = 1;
  for (int halving = 0; halving < kMaxHalvings && !step.is_good; ++halving, size /= 2) {
    auto& next = step.next;
    next.parameters = from.parameters + size * direction;
    next.value = function(next.parameters, next.gradient);
    step.is_good = next.value <= from.value + kSufficientDecrease * size * slope;
    const bool is_equal = options.rounding > 0 && std::abs(next.value - from.value) <=
                                                      options.rounding * std::abs(from.value);
    if (!step.is_good && is_equal) {
      step.is_good = largest_entry(next.gradient) < largest_entry(from.gradient);
    }
  }
  return step;
}

}  // namespace

LbfgsResult lbfgs_minimum(const DifferentiableFunction& function, const torch::Tensor& start,
                          const InverseHessianGuess& guess, const LbfgsOptions& options) {
  at::NoGradGuard no_grad;
  Point point{.parameters = start, .gradient = {}, .value = 0};
  point.value = function(point.parameters, point.gradient);
  InverseHessian inverse_hessian(guess, options.least_curvature);
  LbfgsResult result;
  for (; result.iterations < options.max_iterations; ++result.iterations) {
    if (largest_entry(point.gradient) <= options.tolerance) {
      result.converged = true;
      break;
    }
    auto direction = -inverse_hessian.times(point.gradient);
    double slope = inner_product(direction, point.gradient);
    if (slope >= 0) {  // rounding spoilt the estimate: start it again
      inverse_hessian.forget();
      direction = -inverse_hessian.times(point.gradient);
      slope = inner_product(direction, point.gradient);
    }
    auto [next, is_good] = search_along(direction, slope, point, function, options);
    if (!is_good) break;  // the value is flat to rounding
    inverse_hessian.add(next.parameters - point.parameters, next.gradient - point.gradient);
    point = std::move(next);
  }
  result.parameters = point.parameters;
  result.gradient = point.gradient;
  result.value = point.value;
  return result;
}

}  // namespace kelvin
