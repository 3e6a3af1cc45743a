#pragma once

#include <cstdint>
#include <vector>

namespace kelvin {

// The inner loops of nearest_neighbours.h, in single precision.

// Rows [count, width] side by side in groups, as the kernel reads them.
struct PackedRows {
  int64_t count = 0;
  int64_t width = 0;
  std::vector<float> values = {};  // [groups, width, rows of a group]; the last is filled with 0
};

PackedRows packed_rows(const float* rows, int64_t count, int64_t width);

// Likewise, in smaller groups.
struct PackedQueries {
  int64_t count = 0;
  int64_t width = 0;
  std::vector<float> values = {};
};

PackedQueries packed_queries(const float* queries, int64_t count, int64_t width);

struct ProductHit {
  int32_t row = 0;
  float product = 0;
};

// Appends to hits[i] the rows from `begin` to `end` whose inner product with query i is at least
// thresholds[i].  `begin` is a multiple of kRowsOfGroup.  The rows should fit into a cache.  A
// product is the same whatever else is asked for.
inline constexpr int64_t kRowsOfGroup = 16;
void append_products_above(const PackedRows& rows, int64_t begin, int64_t end,
                           const PackedQueries& queries, const std::vector<float>& thresholds,
                           std::vector<ProductHit>* hits);

// Squared distances of `query` to the rows that `hits` name, to out.  Relative error: not above
// that of dims / 8 + 16 roundings.
void squared_distances(const float* query, const float* rows, int64_t dims, const ProductHit* hits,
                       int64_t count, float* out);

}  // namespace kelvin
