#include "kelvin/numerics/gaussian_fit.h"

#include <torch/types.h>

#include <limits>

#include "kelvin/core/check.h"
#include "kelvin/numerics/gram.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

torch::Tensor root_of_pseudo_inverse(const torch::Tensor& covariance) {
  const auto [values, vectors] = torch::linalg_eigh(covariance);
  const auto cutoff = static_cast<double>(covariance.size(0)) * kEpsilon * values.abs().max();
  const auto kept = (values > cutoff).nonzero().squeeze(1);
  return vectors.index_select(1, kept) / values.index_select(0, kept).sqrt();
}

// What varies by no more than the means are known is constant.
torch::Tensor without_rounding(const torch::Tensor& covariance, const torch::Tensor& sizes,
                               double samples) {
  const auto varies = covariance.diagonal().sqrt() > samples * kEpsilon * sizes;
  const auto both = varies.unsqueeze(0).logical_and(varies.unsqueeze(1));
  return torch::where(both, covariance, torch::zeros_like(covariance));
}

}  // namespace

SharedGaussians::SharedGaussians(const torch::Tensor& means, const torch::Tensor& covariance) {
  check(means.dim() == 2 && means.size(0) > 0 && covariance.dim() == 2 &&
            covariance.size(0) == means.size(1) && covariance.size(1) == means.size(1),
        "SharedGaussians: means and covariance must be [gaussians, dims] and [dims, dims], got ",
        means.sizes(), " and ", covariance.sizes());
  origin_ = means.mean(0, /*keepdim=*/true);
  root_ = root_of_pseudo_inverse(covariance);
  centres_ = (means - origin_).matmul(root_);
}

torch::Tensor SharedGaussians::distances(const torch::Tensor& rows) const {
  check(root_.defined() && rows.dim() == 2 && rows.size(1) == root_.size(0),
        "SharedGaussians: rows must be [rows, dims] with the dims of the means, got ",
        rows.sizes());
  const auto halves = centres_.square().sum(1) / 2;
  return row_numbers(rows.size(0), [&](int64_t begin, int64_t end) {
    const auto shown = (rows.slice(0, begin, end) - origin_).matmul(root_);
    // The nearest by a product of matrices; its distance by the difference, which loses no digits.
    const auto nearest = (shown.matmul(centres_.t()) - halves).argmax(1);
    return (shown - centres_.index_select(0, nearest)).square_().sum(1);
  });
}

torch::Tensor within_covariance(const torch::Tensor& features, const ClassMeans& classes) {
  const auto scatter =
      parallel_gram(features.size(0), features.size(1), [&](int64_t begin, int64_t end) {
        const auto places = classes.places.slice(0, begin, end);
        return features.slice(0, begin, end) - classes.means.index_select(0, places);
      });
  const auto samples = static_cast<double>(features.size(0));
  return without_rounding(scatter / samples, classes.means.abs().amax(0), samples);
}

torch::Tensor total_covariance(const torch::Tensor& within, const ClassMeans& classes) {
  const auto samples = classes.counts.sum();
  const auto shifts = classes.means - classes.mean;
  const auto between = (shifts * (classes.counts / samples).unsqueeze(1)).t().matmul(shifts);
  return without_rounding(within + between, classes.means.abs().amax(0), samples.item<double>());
}

}  // namespace kelvin
