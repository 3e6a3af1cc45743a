#include "kelvin/math/row_hash.h"

#include <algorithm>

#include "kelvin/math/parallel_for.h"

namespace kelvin {
namespace {

void add_signed(const float* values, const float* signs, int64_t count, float* __restrict sums) {
  for (int64_t i = 0; i < count; ++i) sums[i] += signs[i] * values[i];
}

void add_hashed_row(const RowHash& hash, const float* row, float* sums) {
  const auto* shift = hash.shifts;
  for (int64_t begin = 0; begin < hash.dims; begin += hash.width, ++shift) {
    const auto length = std::min(hash.width, hash.dims - begin);
    const auto unwrapped = std::min(length, hash.width - *shift);
    const auto* values = row + begin;
    const auto* signs = hash.signs + begin;
    add_signed(values, signs, unwrapped, sums + *shift);
    add_signed(values + unwrapped, signs + unwrapped, length - unwrapped, sums);
  }
}

}  // namespace

void add_hashed_rows(const RowHash& hash, const float* rows, int64_t count, float* sums) {
  parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      add_hashed_row(hash, rows + i * hash.dims, sums + i * hash.width);
    }
  });
}

}  // namespace kelvin
