#pragma once

#include <torch/types.h>

#include <cstdint>

namespace kelvin {

// Where the classes lie and how their samples spread around that, in two passes over the samples:
// what is squared in the second are differences to the means of the first, so that nothing cancels,
// and it is squared in the few directions in which the means differ, so that no covariance of all
// features is needed.  All sums are float64.

// First pass: the sum of each class's features.
class ClassSums {
 public:
  ClassSums(int64_t classes, int64_t dims);

  // [rows, dims] of any floating type, labels in [0, classes).
  void update(const torch::Tensor& rows, const torch::Tensor& labels);
  void merge(const ClassSums& other);

  int64_t classes() const { return sums_.size(0); }
  int64_t dims() const { return sums_.size(1); }
  int64_t samples() const;
  const torch::Tensor& sums() const { return sums_; }      // [classes, dims]
  const torch::Tensor& counts() const { return counts_; }  // [classes]

 private:
  // Never changed in place: copies and states share them.
  torch::Tensor sums_;
  torch::Tensor counts_;
};

// Between the passes: the means of the K classes that have samples.
struct ClassCentres {
  explicit ClassCentres(const ClassSums& sums);

  int64_t size() const { return classes.size(0); }  // K
  int64_t samples() const;
  torch::Tensor means() const { return centred + mean; }
  torch::Tensor gram() const { return centred.matmul(centred.t()); }
  // Mean of all samples, less the mean of the means.
  torch::Tensor sample_mean() const;

  torch::Tensor classes;  // [K], their labels, ascending
  torch::Tensor counts;   // [K]
  torch::Tensor mean;     // [dims], of the K means, each counted once
  torch::Tensor centred;  // [K, dims], the means without it
};

// Second pass: the samples around their means.
class ClassSpread {
 public:
  // In the directions of the centred means whose singular value squared exceeds `cutoff` times the
  // largest square.
  ClassSpread(const ClassCentres& centres, double cutoff);

  // The same samples again, in any order.  Gives the class whose mean is nearest to each, [rows].
  torch::Tensor update(const torch::Tensor& rows, const torch::Tensor& labels);
  // Of samples that do not belong to the sums.
  torch::Tensor nearest(const torch::Tensor& rows) const;
  // The centres must be the same.
  void merge(const ClassSpread& other);

  const ClassCentres& centres() const { return centres_; }
  int64_t samples() const;
  int64_t directions() const { return lengths_.size(0); }
  // The centred means along the directions, [K, directions].
  torch::Tensor coordinates() const { return left_ * lengths_; }
  // Covariance within the classes along the directions: sum z z^T / N.
  torch::Tensor within() const { return products_ / static_cast<double>(samples()); }
  // Mean squared distance of each class's samples to its mean, over all features: [K].
  torch::Tensor variances() const { return squares_ / counts_; }
  // Sum of all squared distances over N: the trace of the whole within-class covariance.
  double total_within() const;

  const torch::Tensor& products() const { return products_; }  // sums that states hold
  const torch::Tensor& squares() const { return squares_; }
  const torch::Tensor& counts() const { return counts_; }

 private:
  torch::Tensor nearest_places(const torch::Tensor& products) const;

  ClassCentres centres_;
  torch::Tensor gram_;      // [K, K], of the centred means
  torch::Tensor left_;      // [K, directions], left singular vectors of the centred means
  torch::Tensor lengths_;   // [directions], their singular values
  torch::Tensor products_;  // [directions, directions]
  torch::Tensor squares_;   // [K]
  torch::Tensor counts_;    // [K], of this pass
};

}  // namespace kelvin
