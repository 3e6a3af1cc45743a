#pragma once

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kelvin/kernels/distances.h"

namespace kelvin {

// What a search for neighbours sees of vectors.
struct NeighbourPoints {
  torch::Tensor doubles = {};  // [points, dims] float64, as they were given
  torch::Tensor floats = {};   // [points, dims] float32, around the index's origin and scaled
  torch::Tensor reduced = {};  // [points, width] float32, see NeighbourIndex
  torch::Tensor refined = {};  // [points, width] float32, see NeighbourIndex; may be undefined
  torch::Tensor lengths = {};  // [points] float64, around the origin and scaled

  int64_t count() const { return doubles.size(0); }
  int64_t dims() const { return doubles.size(1); }
  const double* double_row(int64_t row) const { return doubles.data_ptr<double>() + row * dims(); }
  const float* refined_row(int64_t row) const {
    return refined.data_ptr<float>() + row * refined.size(1);
  }
  const float* float_row(int64_t row) const { return floats.data_ptr<float>() + row * dims(); }
};

// Comparing one more coordinate of a row costs about as much as so many products of reduced
// vectors.
inline constexpr double kCostOfRefining = 20;

// Many rows, prepared for a search of their k-th nearest: see nearest_neighbours.h.  A row and a
// query are reduced to a few numbers whose product is (|query|^2 - b^2) / 2, where b is a lower
// bound of their distance: principal coordinates, the length of the rest, and a last number, half
// of the squared length of a row with its sign turned, or 1 of a query.  Refined points
// have more principal coordinates and the length of what these leave; their distance is a better
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
  int64_t candidates = 0;  // how many rows are measured before it is known how near they are
  PackedRows packed;       // rows.reduced
  std::vector<int32_t> sample;  // some rows, evenly spread; empty if there are few
  PackedRows packed_sample;     // an even sample of them; empty if there are few

 private:
  void choose_axes(const torch::Tensor& vectors);
  NeighbourPoints points(const torch::Tensor& vectors, bool are_rows) const;
};

// By how much numbers in single precision may be wrong, of a query of some length.
struct NeighbourMargins {
  double few = 0;       // of products of reduced vectors
  double all = 0;       // of products of all coordinates
  double refined = 0;   // of distances of refined points, besides those of distances
  double distance = 0;  // of distances, the part that does not grow with them
  double relative = 0;  // the part that does

  NeighbourMargins(const NeighbourIndex& index, double length) {
    constexpr double kRounding = 0x1p-24;
    const auto dims = static_cast<double>(index.rows.dims());
    const auto product = kRounding * (length + index.longest / 2) * index.longest;
    few = (static_cast<double>(index.packed.width) + 16) * product;
    all = (dims + 16) * product;
    distance = 1.01 * kRounding * (length + index.longest);
    relative = (dims / 8 + 20) * kRounding;
    if (!index.axes.defined()) return;
    // The length of the rest is found from squares, in double precision.
    const auto coordinates = static_cast<double>(index.axes.size(1));
    const auto rest = std::sqrt(4 * dims * std::sqrt(coordinates) * 0x1p-53);
    refined = rest * (length + index.longest);
    few += 2 * rest * length * index.longest;
  }

  double of(double measured) const { return distance + relative * measured; }
};

// One query of a search on its way.
struct NeighbourQuery {
  static constexpr float kEverything = -std::numeric_limits<float>::infinity();

  int64_t place = 0;  // among all queries
  double length = 0;
  NeighbourMargins margins;
  float threshold = kEverything;  // of the products that are searched for
  // What was found: a product, or minus the squared distance of refined points.
  std::vector<ProductHit> hits = {};
  struct Measured {
    int32_t row = 0;
    double distance = 0;  // in single precision, scaled
  };
  std::vector<Measured> measured = {};
  std::vector<double> nearest = {};  // the k smallest distances measured, as a heap

  void forget() {
    hits.clear();
    measured.clear();
    nearest.clear();
  }

  void add(int32_t row, double distance, int64_t k) {
    measured.push_back({row, distance});
    nearest.push_back(distance);
    std::push_heap(nearest.begin(), nearest.end());
    if (static_cast<int64_t>(nearest.size()) <= k) return;
    std::pop_heap(nearest.begin(), nearest.end());
    nearest.pop_back();
  }

  // The product of every row that may be as near as the k-th nearest measured so far is at least
  // this, with that margin of products.
  float needed_product(int64_t k, double margin) const {
    const auto bound = upper_bound(k);
    return rounded_down((length * length - bound * bound) / 2 - margin);
  }

  // The same of minus the squared distance of refined points.
  float needed_closeness(int64_t k) const {
    const auto bound = upper_bound(k);
    const auto measured_bound = bound + margins.of(bound) + margins.refined;
    return rounded_down(-measured_bound * measured_bound);
  }

 private:
  double upper_bound(int64_t k) const {
    if (static_cast<int64_t>(nearest.size()) < k) return std::numeric_limits<double>::infinity();
    return nearest.front() + margins.of(nearest.front());
  }

  static float rounded_down(double number) {
    return std::nextafter(static_cast<float>(number), kEverything);
  }
};

}  // namespace kelvin
