#pragma once

#include <torch/types.h>

namespace kelvin {

// Proposition 3.1 of Unpacking Softmax, for S [rows, columns] whose columns are probability
// vectors: its singular values lie no further apart than the similarity of its columns allows,
//
//   0 <= sigma_1 - sigma_n <= sqrt(1 + r) - sqrt(max(1 / rows - r, 0)),
//
// with r the largest sum of a column's inner products with the others.  By Gershgorin's theorem on
// S^T S, whose diagonal lies in [1 / rows, 1].
struct SingularGap {
  double largest = 0;     // singular value
  double smallest = 0;    // of as many as there are columns: 0 if there are fewer rows
  double similarity = 0;  // r
  double bound = 0;       // of the gap

  double gap() const { return largest - smallest; }
  // How far the gap stays below its bound; less than 0 would refute the proposition.
  double slack() const { return bound - gap(); }
};

// In float64.  An Error unless entries are not negative and every column sums to 1.
SingularGap singular_gap(const torch::Tensor& columns);

}  // namespace kelvin
