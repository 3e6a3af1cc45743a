#pragma once

#include <algorithm>
#include <cstdint>

#include "kelvin/kernels/row_vectors.h"

// Products of matrices of float32 in blocks that stay in registers.

namespace kelvin {

// result[row, column] is the sum over terms of left[row, term] * right[term, column].
struct FloatProduct {
  const float* left = nullptr;
  int64_t row_step = 0;
  int64_t term_step = 0;
  const float* right = nullptr;
  int64_t right_step = 0;   // from one term to the next
  int64_t vector_step = 0;  // from one vector of columns to the next
  int64_t terms = 0;
  float* results = nullptr;
  int64_t result_step = 0;  // from one row to the next; vectors of columns lie side by side
};

enum class FloatResults { replaced, added };

template <int kLanes, int kRows, int kVectors, FloatResults kResults>
KELVIN_ROW_INLINE void float_block(const FloatProduct& p, int64_t row, int64_t vector) {
  const float* left = p.left + row * p.row_step;
  const float* right = p.right + vector * p.vector_step;
  float* results = p.results + row * p.result_step + vector * kLanes;
  Floats<kLanes> sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int64_t i = 0; i < kVectors; ++i) {
      const float* from = results + r * p.result_step + i * kLanes;
      sums[r][i] = kResults == FloatResults::added ? load_lanes<kLanes>(from) : Floats<kLanes>{};
    }
  }
  for (int64_t term = 0; term < p.terms; ++term, left += p.term_step, right += p.right_step) {
    Floats<kLanes> factors[kVectors];
#pragma GCC unroll 2
    for (int64_t i = 0; i < kVectors; ++i) {
      factors[i] = load_lanes<kLanes>(right + i * p.vector_step);
    }
#pragma GCC unroll 8
    for (int64_t r = 0; r < kRows; ++r) {
      const auto factor = all_lanes<kLanes>(left[r * p.row_step]);
#pragma GCC unroll 2
      for (int64_t i = 0; i < kVectors; ++i) sums[r][i] += factor * factors[i];
    }
  }
#pragma GCC unroll 8
  for (int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int64_t i = 0; i < kVectors; ++i) {
      store_lanes<kLanes>(results + r * p.result_step + i * kLanes, sums[r][i]);
    }
  }
}

// Rows that are multiplied at once: with two vectors of each, their sums leave room for factors.
template <int kLanes>
constexpr int kBlockRows = kLanes == 16 ? 8 : 4;

template <int kLanes, int kVectors, FloatResults kResults>
KELVIN_ROW_INLINE void float_rows(const FloatProduct& p, int64_t rows, int64_t vector) {
  constexpr int kRows = kBlockRows<kLanes>;
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    float_block<kLanes, kRows, kVectors, kResults>(p, row, vector);
  }
  for (; row < rows; ++row) float_block<kLanes, 1, kVectors, kResults>(p, row, vector);
}

template <int kLanes, FloatResults kResults>
KELVIN_ROW_INLINE void multiply_floats(const FloatProduct& p, int64_t rows, int64_t vectors) {
  int64_t vector = 0;
  for (; vector + 2 <= vectors; vector += 2) float_rows<kLanes, 2, kResults>(p, rows, vector);
  if (vector < vectors) float_rows<kLanes, 1, kResults>(p, rows, vector);
}

// Rows of numbers as floats, padded with zeros to `columns` and `rows_padded`.
template <class Number>
void pack_rows(const Number* from, int64_t rows, int64_t width, int64_t padded_rows,
               int64_t padded_width, float* to) {
  for (int64_t row = 0; row < padded_rows; ++row, to += padded_width) {
    const auto kept = row < rows ? width : 0;
    for (int64_t i = 0; i < kept; ++i) to[i] = number(from[row * width + i]);
    std::fill(to + kept, to + padded_width, 0.0F);
  }
}

// [rows / lanes, width, lanes]: right factors of products whose terms are the width.
template <int kLanes, class Number>
void pack_turned(const Number* from, int64_t rows, int64_t width, float* to) {
  for (int64_t first = 0; first < rows; first += kLanes, to += width * kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const auto row = first + lane;
      for (int64_t i = 0; i < width; ++i) {
        to[i * kLanes + lane] = row < rows ? number(from[row * width + i]) : 0.0F;
      }
    }
  }
}

}  // namespace kelvin
