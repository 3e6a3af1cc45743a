#include "kelvin/numerics/logistic_regression.h"

#include <torch/types.h>

#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/numerics/lbfgs.h"

namespace kelvin {
namespace {

// The objective over one matrix of parameters [classes, dims + 1]; the last column is the bias.
class Objective {
 public:
  Objective(torch::Tensor features, torch::Tensor labels, int64_t classes, double l2)
      : features_(std::move(features)), l2_(l2) {
    const auto samples = features_.size(0);
    one_hot_ = torch::zeros({samples, classes}, features_.options());
    one_hot_.scatter_(1, labels.unsqueeze(1), 1);
  }

  // Loss in double precision whatever the features' type; the gradient in theirs.
  double operator()(const torch::Tensor& parameters, torch::Tensor& gradient) const {
    const auto dims = features_.size(1);
    const auto samples = static_cast<double>(features_.size(0));
    const auto weight = parameters.narrow(1, 0, dims);
    const auto bias = parameters.select(1, dims);
    const auto log_probabilities = torch::log_softmax(torch::addmm(bias, features_, weight.t()), 1);
    const auto residual = (log_probabilities.exp() - one_hot_) / samples;
    gradient = torch::cat(
        {residual.t().matmul(features_) + l2_ * weight, residual.sum(0).unsqueeze(1)}, 1);
    const double loss =
        -(log_probabilities * one_hot_).sum(torch::kFloat64).item<double>() / samples;
    return loss + 0.5 * l2_ * weight.square().sum(torch::kFloat64).item<double>();
  }

 private:
  torch::Tensor features_;
  torch::Tensor one_hot_;
  double l2_;
};

}  // namespace

torch::Tensor LinearClassifier::scores(const torch::Tensor& features) const {
  return torch::addmm(bias, features, weight.t());
}

LogisticRegression::LogisticRegression(const torch::Tensor& features, const torch::Tensor& labels,
                                       int64_t classes)
    : features_(features), labels_(labels), classes_(classes) {
  at::NoGradGuard no_grad;
  check_samples();
  products_ = products_from(0);
}

void LogisticRegression::extend_to(const torch::Tensor& features, const torch::Tensor& labels) {
  at::NoGradGuard no_grad;
  const auto known = features_.size(0);
  check(features.dim() == 2 && features.size(0) >= known && features.size(1) == features_.size(1),
        "fit_logistic_regression: more samples must be at least [", known, ", ", features_.size(1),
        "], got ", features.sizes());
  features_ = features;
  labels_ = labels;
  check_samples();
  if (features_.size(0) > known) products_ += products_from(known);
}

void LogisticRegression::check_samples() const {
  check(features_.dim() == 2 && features_.size(0) > 0 && features_.is_floating_point(),
        "fit_logistic_regression: features must be floating [samples, dims], got ",
        features_.sizes());
  check(labels_.dim() == 1 && labels_.size(0) == features_.size(0),
        "fit_logistic_regression: labels must be [", features_.size(0), "], got ", labels_.sizes());
  check(classes_ >= 2, "fit_logistic_regression: needs at least 2 classes, got ", classes_);
  check(labels_.min().item<int64_t>() >= 0 && labels_.max().item<int64_t>() < classes_,
        "fit_logistic_regression: labels must be in [0, ", classes_, ")");
}

torch::Tensor LogisticRegression::products_from(int64_t first) const {
  const auto rows = features_.slice(0, first);
  const auto dims = rows.size(1);
  auto products = torch::empty({dims + 1, dims + 1}, torch::kFloat64);
  const auto sums = rows.sum(0);
  products.narrow(0, 0, dims).narrow(1, 0, dims).copy_(rows.t().matmul(rows));
  products.select(0, dims).narrow(0, 0, dims).copy_(sums);
  products.select(1, dims).narrow(0, 0, dims).copy_(sums);
  products[dims][dims] = rows.size(0);
  check(torch::isfinite(products).all().item<bool>(),
        "fit_logistic_regression: features must be finite");
  return products;
}

// Boehning's bound (1992): whatever the parameters, the Hessian is at most
// 1/2 X^T X / n + l2 for each class, X with a column of ones for the bias.  Its
// inverse takes out the correlations between features, which is what makes plain
// gradients slow.
torch::Tensor LogisticRegression::bound_inverse(double l2) const {
  auto bound = products_ * (0.5 / static_cast<double>(features_.size(0)));
  // A touch more on the diagonal: features may be exact copies of each other.
  const double ridge = 1e-6 * bound.diagonal().mean().item<double>() + 1e-12;
  bound.diagonal().add_(l2 + ridge);
  return torch::cholesky_inverse(torch::linalg_cholesky(bound)).to(features_.scalar_type());
}

LinearClassifier LogisticRegression::fit(const LogisticRegressionOptions& options,
                                         const LinearClassifier* start) const {
  check(options.l2 >= 0, "fit_logistic_regression: l2 must not be below 0, got ", options.l2);
  at::NoGradGuard no_grad;

  const auto dims = features_.size(1);
  const Objective objective(features_, labels_, classes_, options.l2);
  const auto first =
      start ? torch::cat({start->weight, start->bias.unsqueeze(1)}, 1).to(features_.options())
            : torch::zeros({classes_, dims + 1}, features_.options());
  const auto inverse = bound_inverse(options.l2);
  const auto minimum = lbfgs_minimum(
      objective, first, [&](const torch::Tensor& gradient) { return gradient.matmul(inverse); },
      {.max_iterations = options.max_iterations, .tolerance = options.tolerance});
  check(std::isfinite(minimum.value), "fit_logistic_regression: features must be finite");

  LinearClassifier result;
  result.weight = minimum.parameters.narrow(1, 0, dims).clone();
  result.bias = minimum.parameters.select(1, dims).clone();
  result.iterations = minimum.iterations;
  result.converged = minimum.converged;
  return result;
}

LinearClassifier fit_logistic_regression(const torch::Tensor& features, const torch::Tensor& labels,
                                         int64_t classes, const LogisticRegressionOptions& options,
                                         const LinearClassifier* start) {
  return LogisticRegression(features, labels, classes).fit(options, start);
}

}  // namespace kelvin
