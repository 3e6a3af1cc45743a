#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "kelvin/math/distance_kernels.h"

namespace kelvin {

// What a search for neighbours sees of vectors.
struct NeighbourPoints {
  torch::Tensor doubles = {};  // [points, dims] float64, as they were given
  torch::Tensor floats = {};   // [points, dims] float32, around the index's origin and scaled
  torch::Tensor reduced = {};  // [points, width] float32, see NeighbourIndex
  torch::Tensor closer = {};   // [points, width] float32, see NeighbourIndex; may be undefined
  torch::Tensor lengths = {};  // [points] float64, around the origin and scaled

  int64_t count() const { return doubles.size(0); }
  int64_t dims() const { return doubles.size(1); }
  const double* double_row(int64_t row) const { return doubles.data_ptr<double>() + row * dims(); }
  const float* closer_row(int64_t row) const {
    return closer.data_ptr<float>() + row * closer.size(1);
  }
  const float* float_row(int64_t row) const { return floats.data_ptr<float>() + row * dims(); }
};

// A closer look at a coordinate of a row costs about as much as so many products of reduced
// vectors.
inline constexpr double kCostOfLooking = 20;

// Many rows, prepared for a search of their k-th nearest: see nearest_neighbours.h.  A row and a
// query are reduced to a few numbers whose product is (|query|^2 - b^2) / 2, where b is a lower
// bound of their distance: principal coordinates, the length of the rest, and a last number, half
// of the squared length of a row with its sign turned, or 1 of a query.  For a closer look there
// are more principal coordinates and the length of what these leave, whose distance is a better
// bound.
struct NeighbourIndex {
  // [rows, dims] float64, contiguous, and k in [1, rows].
  NeighbourIndex(const torch::Tensor& vectors, int64_t k);

  // Of queries.
  NeighbourPoints points_of(const torch::Tensor& vectors) const;

  int64_t k = 0;
  torch::Tensor origin;    // [dims], the mean of the rows
  double scale = 1;        // a power of two that makes the longest row about 1
  torch::Tensor axes;      // [dims, principal coordinates]; undefined: all coordinates are compared
  int64_t few = 0;         // how many of them make reduced points
  NeighbourPoints rows;    // without needless copies
  double longest = 0;      // of the rows, scaled
  int64_t candidates = 0;  // how many rows are worth a look before it is known how near they are
  PackedRows packed;       // rows.reduced
  std::vector<int32_t> sample;  // some rows, evenly spread; empty if there are few
  PackedRows packed_sample;     // an even sample of them; empty if there are few

 private:
  void choose_axes(const torch::Tensor& vectors);
  NeighbourPoints points(const torch::Tensor& vectors, bool are_rows) const;
};

}  // namespace kelvin
