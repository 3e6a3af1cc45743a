#include "kelvin/math/feature_sketch.h"

#include <torch/types.h>

#include <algorithm>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

at::Generator generator_of(uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

// Adds a row to its sums: block after block of `width` numbers, each rotated by its shift.  Numbers
// of one block never meet; two of different blocks do with a probability of one over width.
void add_row(const float* row, const float* signs, int64_t dims, const std::vector<int64_t>& shifts,
             float* sums, int64_t width) {
  for (int64_t block = 0, begin = 0; begin < dims; ++block, begin += width) {
    const auto length = std::min(width, dims - begin);
    const auto shift = shifts[static_cast<size_t>(block)];
    const auto before_end = std::min(length, width - shift);
    for (int64_t i = 0; i < before_end; ++i) sums[shift + i] += signs[begin + i] * row[begin + i];
    for (int64_t i = before_end; i < length; ++i) {
      sums[shift + i - width] += signs[begin + i] * row[begin + i];
    }
  }
}

}  // namespace

FeatureSketch::FeatureSketch(int64_t dims, int64_t size, uint64_t seed)
    : dims_(dims), width_(std::min(dims, size)), seed_(seed) {
  check(dims > 0 && size > 0, "FeatureSketch: dims and size must be above 0, got ", dims, " and ",
        size);
}

}  // namespace kelvin
