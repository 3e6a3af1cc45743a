#pragma once

#include <cstdint>

namespace kelvin {

// A random map of `dims` numbers to `width` sums.
struct RowHash {
  int64_t dims = 0;
  int64_t width = 0;
  const float* signs = nullptr;     // [dims], of +1 and -1
  const int64_t* shifts = nullptr;  // in [0, width), one for each block of `width` numbers
};

// Adds each row of `rows` [count, dims] to its sums in `sums` [count, width], block after block,
// each rotated by its shift: numbers of one block never meet; two of different blocks do with a
// probability of one over width.  Its own file, because it is compiled for speed: one pass over all
// features of all layers.
void add_hashed_rows(const RowHash& hash, const float* rows, int64_t count, float* sums);

}  // namespace kelvin
