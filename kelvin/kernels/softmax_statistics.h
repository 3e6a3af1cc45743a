#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kelvin/kernels/row_vectors.h"

// What a streamed softmax has to know of a row: its largest logit, the sum of exponentials and that
// of their products with distances below the largest, of which the entropy follows.

namespace kelvin {

constexpr float kInfiniteLogit = std::numeric_limits<float>::infinity();

// The largest of [begin, end), in whatever lane.
template <int kLanes, class Number>
KELVIN_ROW_INLINE Floats<kLanes> largest_in(const ReadRow<Number>& row, int64_t begin,
                                            int64_t end) {
  const auto least = all_lanes<kLanes>(kLowestNumber);
  Floats<kLanes> tops[4] = {least, least, least, least};  // or each would wait for the one before
  constexpr int64_t kStep = int64_t{4} * kLanes;
  auto i = begin;
  for (; i + kStep <= end; i += kStep) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      tops[k] = larger(load_lanes<kLanes>(row.numbers + i + k * kLanes), tops[k]);
    }
  }
  for_vectors<kLanes>(
      row, i, end, [&](int64_t, Floats<kLanes> x) __attribute__((always_inline)) {
        tops[0] = larger(x, tops[0]);
      });
  return larger(larger(tops[0], tops[1]), larger(tops[2], tops[3]));
}

template <int kLanes, class Number>
KELVIN_ROW_INLINE Floats<kLanes> smallest_unmasked(const ReadRow<Number>& row, int64_t columns) {
  const auto most = all_lanes<kLanes>(kInfiniteLogit);
  auto smallest = most;
  for_vectors<kLanes>(
      row, 0, columns, [&](int64_t, Floats<kLanes> x) __attribute__((always_inline)) {
        const auto kept = x == -kInfiniteLogit ? most : x;
        smallest = kept < smallest ? kept : smallest;
      });
  return smallest;
}

// Sums of exponentials and of their products with distances below `top`, in whatever lanes.
template <int kLanes>
struct LaneSums {
  Floats<kLanes> exponentials = {};
  Floats<kLanes> products = {};
};

template <int kLanes, class Number>
KELVIN_ROW_INLINE LaneSums<kLanes> sums_in(const ReadRow<Number>& row, int64_t begin, int64_t end,
                                           float top, const PowerScale& scale) {
  LaneSums<kLanes> sums;
  const auto least = all_lanes<kLanes>(scale.least);
  for_vectors<kLanes>(
      row, begin, end, [&](int64_t, Floats<kLanes> x) __attribute__((always_inline)) {
        const auto d = larger(least, x - top);
        const auto power = powers<kLanes>(d, scale);
        sums.exponentials += power;
        sums.products += power * d;
      });
  return sums;
}

// Of as many rows as there are lanes.
template <int kLanes>
struct Statistics {
  Floats<kLanes> largest = {};
  Floats<kLanes> sum = {};       // of exp((x - largest) / T)
  Floats<kLanes> products = {};  // of it and x - largest
};

// Of one long row, block by block, so that it is read from memory once.
template <int kLanes, class Number>
KELVIN_ROW_INLINE Statistics<kLanes> statistics_of_long(const ReadRow<Number>& row, int64_t columns,
                                                        double factor, const PowerScale& scale) {
  float top = kLowestNumber;
  double sum = 0;
  double products = 0;
  for (int64_t begin = 0; begin < columns; begin += kRowBlock) {
    const auto end = std::min(begin + kRowBlock, columns);
    const auto tops = largest_in<kLanes>(row, begin, end);
    float highest = top;
#pragma GCC unroll 16
    for (int lane = 0; lane < kLanes; ++lane) highest = std::max(highest, tops[lane]);
    if (highest > top) {
      const double step = static_cast<double>(top) - static_cast<double>(highest);
      const double shrunk = std::exp(step * factor);
      products = shrunk * (products + step * sum);
      sum *= shrunk;
      top = highest;
    }
    const auto sums = sums_in<kLanes>(row, begin, end, top, scale);
    sum += sum_of_lanes<kLanes>(sums.exponentials);
    products += sum_of_lanes<kLanes>(sums.products);
  }
  return {.largest = all_lanes<kLanes>(top),
          .sum = all_lanes<kLanes>(static_cast<float>(sum)),
          .products = all_lanes<kLanes>(static_cast<float>(products))};
}

}  // namespace kelvin
