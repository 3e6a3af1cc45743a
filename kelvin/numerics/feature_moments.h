#pragma once

#include <torch/types.h>

#include <cstdint>

namespace kelvin {

// Sum and sum of squares of every feature over all rows it was shown, exact but for the rounding
// of float64: one pass over float32 rows, of which no float64 copy is made.
class FeatureMoments {
 public:
  explicit FeatureMoments(int64_t dims);

  // [rows, dims].  A NaN or an infinity stays in the sums: see is_finite.
  void update(const torch::Tensor& rows);
  void merge(const FeatureMoments& other);

  // Mean squared distance of the rows to their mean; not below 0.
  double total_variance() const;
  bool is_finite() const;

  int64_t rows() const { return rows_; }
  int64_t dims() const { return sums_.size(0); }
  torch::Tensor sums() const { return sums_.clone(); }
  torch::Tensor squares() const { return squares_.clone(); }

 private:
  torch::Tensor sums_;     // [dims]
  torch::Tensor squares_;  // [dims]
  int64_t rows_ = 0;
};

}  // namespace kelvin
