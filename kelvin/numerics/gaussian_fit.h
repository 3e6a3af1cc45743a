#pragma once

#include <torch/types.h>

#include <cstdint>

#include "kelvin/numerics/class_means.h"

namespace kelvin {

// Gaussians around several means that share one covariance, which may be singular: of it the
// pseudo-inverse is taken, with the cutoff of scipy.linalg.pinvh, so that directions without
// variance count for nothing.
class SharedGaussians {
 public:
  SharedGaussians() = default;
  // [gaussians, dims], at least one, and [dims, dims], symmetric.
  SharedGaussians(const torch::Tensor& means, const torch::Tensor& covariance);

  // [rows] squared Mahalanobis distances of [rows, dims] to the nearest mean.
  torch::Tensor distances(const torch::Tensor& rows) const;

  int64_t rank() const { return root_.size(1); }

 private:
  torch::Tensor origin_;   // [1, dims]: around it no digits are lost
  torch::Tensor root_;     // [dims, rank], times its transpose the pseudo-inverse
  torch::Tensor centres_;  // [gaussians, rank], the means as the root shows them
};

// [dims, dims] of the samples around the means of their classes, over their number.  Features that
// are constant in every class have exactly 0.
torch::Tensor within_covariance(const torch::Tensor& features, const ClassMeans& classes);

// The same around the mean of all of them, from `within`.
torch::Tensor total_covariance(const torch::Tensor& within, const ClassMeans& classes);

}  // namespace kelvin
