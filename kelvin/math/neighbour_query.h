#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kelvin/math/distance_kernels.h"
#include "kelvin/math/neighbour_index.h"

namespace kelvin {

// By how much numbers in single precision may be wrong, of a query of some length.
struct NeighbourMargins {
  double few = 0;       // of products of reduced vectors
  double all = 0;       // of products of all coordinates
  double closer = 0;    // of distances of the closer look, besides those of distances
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
    closer = rest * (length + index.longest);
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
  float threshold = kEverything;  // of the products that are looked for
  // What was found: a product, or minus the square of a distance after a closer look.
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

  // The same of minus the squared distance of a closer look.
  float needed_closeness(int64_t k) const {
    const auto bound = upper_bound(k);
    const auto measured_bound = bound + margins.of(bound) + margins.closer;
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
