#pragma once

#include <torch/types.h>

namespace kelvin {

// NECO, arXiv 2310.06823: how much of a feature lies in the leading principal directions of the
// training features.

// Of training features around `mean` [dims] with this population covariance [dims, dims], both
// float64.
struct PrincipalAxes {
  torch::Tensor mean = {};
  torch::Tensor deviations = {};  // [dims], by which features are divided: ones without a scaler
  torch::Tensor variances = {};   // [dims], descending, of what was divided
  torch::Tensor directions = {};  // [dims, dims], a column for each of them
  torch::Tensor rank = {};        // a whole number: directions beyond it are arbitrary
};

// With `scaler`, features are standardised; one that is constant stays as it is and has no part in
// the directions.
PrincipalAxes principal_axes(const torch::Tensor& mean, const torch::Tensor& covariance,
                             bool scaler);

// What the lengths of projections are divided by.
enum class NecoDenominator {
  scaled,  // the length of what was projected
  raw,     // that of the feature as it is
};

// The fraction [samples] of float64 features [samples, dims] along the first `count` directions, or
// as many as the rank; 0 where there is no length.  Differentiable in the features.
torch::Tensor neco_fractions(const PrincipalAxes& axes, int64_t count, NecoDenominator denominator,
                             const torch::Tensor& features);

struct NecoScoreOptions {
  bool scaler = true;
  bool raw_denominator = false;
};

// Those of features of any floating type by training features [train_samples, dims]: the higher,
// the more like them.
torch::Tensor neco_scores(const torch::Tensor& features, const torch::Tensor& train_features,
                          int64_t count, const NecoScoreOptions& options = {});

}  // namespace kelvin
