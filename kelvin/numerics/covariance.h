#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace kelvin {

// Mean and covariance of all the rows it was shown, in double precision.  Rows are gathered to
// blocks, each is centred by its own mean before anything is squared, and blocks are joined by the
// formula of Chan, Golub and LeVeque: a large mean costs no digits.
class CovarianceAccumulator {
 public:
  // Rows are multiplied so many at a time: large products run faster, and sums of the size of the
  // scatter are touched less often.
  static constexpr int64_t kBlockRows = 1024;

  enum class Products {
    exact,  // rows are multiplied in double precision
    fast,   // in single precision within a block, for what is known to a few digits anyway
  };

  explicit CovarianceAccumulator(int64_t dims, Products products = Products::exact);
  // Copies are deep: sums grow in place.
  CovarianceAccumulator(const CovarianceAccumulator& other);
  CovarianceAccumulator& operator=(const CovarianceAccumulator& other);
  ~CovarianceAccumulator() = default;

  // [rows, dims] of any floating type, finite.
  void update(const torch::Tensor& rows);
  void merge(const CovarianceAccumulator& other);

  int64_t dims() const { return mean_.size(0); }
  int64_t rows() const { return rows_ + waiting_rows_; }
  // Joins what is gathered so far; mean and scatter hold all rows only after it.
  void finish_block();
  const torch::Tensor& mean() const { return mean_; }  // [dims]
  torch::Tensor scatter() const;                       // [dims, dims], sum of products

  // Of the centred matrix [rows, dims] of all rows: descending, min(rows - 1, dims) of them, at
  // least one row is needed.  Their squares over rows - 1 are the eigenvalues of the covariance.
  torch::Tensor singular_values() const;

  // Bytes of one that has so many dimensions, between blocks.
  static int64_t bytes_for(int64_t dims);
  // Besides, while a block is joined.
  static int64_t bytes_of_adding(int64_t dims);

 private:
  // Counts so many rows with this mean; gives the vector whose product with itself they add to the
  // scatter besides their own.
  torch::Tensor move_mean(int64_t rows, const torch::Tensor& mean);

  Products products_;
  int64_t rows_ = 0;  // without those that wait
  torch::Tensor mean_;
  torch::Tensor scatter_;  // its lower half; above the diagonal there is anything
  std::vector<torch::Tensor> waiting_;
  int64_t waiting_rows_ = 0;
};

}  // namespace kelvin
