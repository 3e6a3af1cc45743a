#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>

#include "kelvin/numerics/feature_moments.h"
#include "kelvin/numerics/feature_sketch.h"

namespace kelvin {

// Adds each row [dims] of `rows` to the row of float64 `sums` [classes, dims] that its label names,
// in place: one pass over the rows, of which no float64 copy is made if they are float32.
void add_class_sums(const torch::Tensor& rows, const torch::Tensor& labels, torch::Tensor& sums);

// In float64; classes without samples are left out.
struct ClassMeans {
  torch::Tensor means;   // [classes that have samples, dims]
  torch::Tensor counts;  // [classes that have samples]
  torch::Tensor places;  // [samples] int64, which of the means is that of the sample's class
  torch::Tensor mean;    // [dims] of all samples
};

// Of [samples, dims] features, at least one, and labels in [0, classes).
ClassMeans class_means(const torch::Tensor& features, const torch::Tensor& labels, int64_t classes);

// How much of the variance of features lies between the classes' means and how much around them,
// from one pass over the samples.  The sum of both is exact; how it is divided is exact if the
// sketch is, and estimated from the projected features otherwise, with a relative standard error of
// at most about sqrt(2 / width) of each part.
class ClassVariance {
 public:
  ClassVariance(const FeatureSketch& sketch, int64_t classes);

  // [rows, dims] in float32, and labels in [0, classes).
  void update(const torch::Tensor& rows, const torch::Tensor& labels);
  void merge(const ClassVariance& other);

  struct Parts {
    double between = 0;  // sum_c n_c |mu_c - mu|^2 / N
    double within = 0;   // sum |x - mu_c|^2 / N
  };
  Parts parts() const;

  bool is_finite() const { return exact_.is_finite(); }
  bool is_estimated() const { return projected_.has_value(); }
  int64_t samples() const { return exact_.rows(); }
  int64_t dims() const { return exact_.dims(); }
  int64_t width() const { return class_sums_.size(1); }
  torch::Tensor class_sums() const { return class_sums_.clone(); }      // [classes, width]
  torch::Tensor class_counts() const { return class_counts_.clone(); }  // [classes]
  const FeatureMoments& exact() const { return exact_; }

  static int64_t bytes(int64_t dims, int64_t width, int64_t classes);

 private:
  FeatureSketch sketch_;
  FeatureMoments exact_;                     // of all features
  std::optional<FeatureMoments> projected_;  // of their projections, if there are any
  torch::Tensor class_sums_;
  torch::Tensor class_counts_;
};

}  // namespace kelvin
