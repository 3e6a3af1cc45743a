#include "kelvin/ops/neco.h"

#include <limits>

#include "kelvin/core/check.h"
#include "kelvin/ops/libtorch.h"

namespace kelvin {
namespace {

// A mean is known to so much of its size.
constexpr double kNecoRounding = 64 * std::numeric_limits<double>::epsilon();

void check_features(const char* what, const torch::Tensor& features) {
  check(features.dim() == 2, "neco: ", what, " must be [samples, dims], are of ", features.dim(),
        " dimensions");
  check(features.is_floating_point(), "neco: ", what, " must be floating-point numbers, are ",
        features.dtype());
}

}  // namespace

PrincipalAxes principal_axes(const torch::Tensor& mean, const torch::Tensor& covariance,
                             bool scaler) {
  const auto std_dev = covariance.diagonal().sqrt();
  // Constant features have no standard deviation: what there is comes from the rounding of their
  // mean.
  const auto varies = std_dev > kNecoRounding * mean.abs();
  auto deviations = torch::ones_like(mean);
  if (scaler) deviations = torch::where(varies, std_dev, deviations);
  const auto both_vary = varies.unsqueeze(0).logical_and(varies.unsqueeze(1));
  const auto scaled =
      (covariance / deviations.outer(deviations)).masked_fill(both_vary.logical_not(), 0);
  const auto [ascending, vectors] = torch::linalg_eigh(scaled);
  const auto variances = ascending.flip(0).clamp_min(0);
  const double rounding = std::numeric_limits<double>::epsilon();
  const auto cutoff = variances.narrow(0, 0, 1) * rounding * torch::ones_like(variances).sum();
  return {.mean = mean,
          .deviations = deviations,
          .variances = variances,
          .directions = vectors.flip(1),
          .rank = (variances > cutoff).sum()};
}

torch::Tensor neco_fractions(const PrincipalAxes& axes, int64_t count, NecoDenominator denominator,
                             const torch::Tensor& features) {
  const auto places = torch::ones_like(axes.variances).cumsum(0);
  const auto kept = (places <= count).logical_and(places <= axes.rank);
  const auto directions = axes.directions.slice(1, 0, count) * kept.slice(0, 0, count);
  const auto scaled = (features - axes.mean) / axes.deviations;
  const auto length = (denominator == NecoDenominator::scaled ? scaled : features).norm(2, 1);
  auto ratio = scaled.matmul(directions).norm(2, 1) / length;
  if (denominator == NecoDenominator::scaled) {
    // All directions kept: the ratio is 1 for all numbers, and rounding must not rank samples.
    ratio = torch::where(kept.all(), 1 + 0 * length, ratio);
  }
  // What has no direction gets the score of the most OOD sample.
  return torch::where(length == 0, torch::zeros_like(length), ratio);
}

torch::Tensor neco_scores(const torch::Tensor& features, const torch::Tensor& train_features,
                          int64_t count, const NecoScoreOptions& options) {
  check_features("features", features);
  check_features("training features", train_features);
  if (has_sizes(features) && has_sizes(train_features)) {
    const auto dims = features.size(1);
    check(train_features.size(1) == dims, "neco: training features must have ", dims,
          " dims as the others, have ", train_features.size(1));
    check(train_features.size(0) >= 2, "neco: needs at least 2 training samples, got ",
          train_features.size(0));
    check(count >= 1 && count <= dims, "neco: dimensions must be in [1, ", dims, "], got ", count);
  }
  const auto train = train_features.detach().to(torch::kFloat64);
  if (has_numbers(train)) {
    check(train.isfinite().all().item<bool>(),
          "neco: training features must be finite, got a NaN or an infinity");
  }
  const auto mean = train.mean(0);
  const auto centred = train - mean;
  const auto covariance = centred.t().matmul(centred / torch::ones_like(train).sum(0));
  const auto denominator =
      options.scaler && !options.raw_denominator ? NecoDenominator::scaled : NecoDenominator::raw;
  return neco_fractions(principal_axes(mean, covariance, options.scaler), count, denominator,
                        features.to(torch::kFloat64));
}

}  // namespace kelvin
