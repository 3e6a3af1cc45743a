#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>

namespace kelvin {

struct NeighbourIndex;

// Finds how far the k-th nearest of many rows is, exact but for the rounding of float64.  Most rows
// are ruled out by what is cheap: with x and y split into their leading principal coordinates p and
// the length r of the rest, |x - y|^2 >= |p_x - p_y|^2 + (r_x - r_y)^2, in single precision with a
// margin for its rounding.  What is left is measured, and what is within rounding of the k-th
// nearest is measured in double precision.
class NearestNeighbours {
 public:
  NearestNeighbours() = default;
  // [rows, dims], finite, and k in [1, rows].
  NearestNeighbours(const torch::Tensor& rows, int64_t k);

  // [queries] Euclidean distances of [queries, dims], finite, to their k-th nearest rows.
  torch::Tensor distances(const torch::Tensor& queries) const;

  int64_t k() const;
  // How many principal coordinates rule out rows: what was cheapest for a sample of them.  0 if
  // that is to compare all coordinates.
  int64_t principal_coordinates() const;

 private:
  std::shared_ptr<const NeighbourIndex> index_;
};

}  // namespace kelvin
