#pragma once

#include <torch/types.h>

#include <cstdint>

namespace kelvin {

// Sums x x^T over the rows x of everything it was shown, in double precision.
// The singular values of the whole [rows, dims] matrix come out of it without
// the matrix ever being in memory; squaring costs half of the digits, so values
// below about 1e-7 of the largest are noise.
class GramAccumulator {
 public:
  explicit GramAccumulator(int64_t dims);

  // [rows, dims] of any floating type.
  void update(const torch::Tensor& rows);
  void merge(const GramAccumulator& other);

  // Descending, min(rows, dims) of them.
  torch::Tensor singular_values() const;
  // Square root of the sum of squares of all entries.
  double frobenius_norm() const;

  int64_t rows() const { return rows_; }
  const torch::Tensor& gram() const { return gram_; }
  static GramAccumulator from_state(const torch::Tensor& gram, int64_t rows);

 private:
  torch::Tensor gram_;
  int64_t rows_ = 0;
};

// Of singular values, at least one above 0, in any order:

// exp of the entropy of the values divided by their sum (Roy and Vetterli, 2007).
double effective_rank(const torch::Tensor& singular_values);

// The same with 1e-7 added to each fraction, as RankMe has it (Garrido and others, 2023): of all
// min(rows, columns) singular values, zeros too.
double rankme(const torch::Tensor& singular_values);

// Sum of the squares over the largest square.
double stable_rank(const torch::Tensor& singular_values);

// (sum of the squares)^2 over the sum of the fourth powers: of eigenvalues of a covariance,
// (sum)^2 over the sum of squares.
double participation_ratio(const torch::Tensor& singular_values);

}  // namespace kelvin
