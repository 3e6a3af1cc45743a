#include "kelvin/numerics/feature_moments.h"

#include <torch/types.h>

#include <algorithm>
#include <array>

#include "kelvin/core/check.h"
#include "kelvin/kernels/instruction_sets.h"
#include "kelvin/ops/parallel_for.h"

namespace kelvin {
namespace {

constexpr int64_t kFeatureBlock = 512;  // features whose sums stay in the nearest cache

// Adds `width` columns of all rows to their sums.
void add_columns(const float* rows, int64_t count, int64_t stride, int64_t width, double* sums,
                 double* squares) {
  for (int64_t row = 0; row < count; ++row) {
    const float* values = rows + row * stride;
    for (int64_t i = 0; i < width; ++i) {
      const double value = values[i];
      sums[i] += value;
      squares[i] += value * value;
    }
  }
}

// The same of a whole block; with its sums on the stack the compiler can vectorise the loop.  Every
// feature has sums of its own, so vectors of any width add in the same order.
KELVIN_VECTOR_CLONES void add_block(const float* rows, int64_t count, int64_t stride, double* sums,
                                    double* squares) {
  std::array<double, kFeatureBlock> block_sums = {};
  std::array<double, kFeatureBlock> block_squares = {};
  for (int64_t row = 0; row < count; ++row) {
    const float* values = rows + row * stride;
    for (size_t i = 0; i < kFeatureBlock; ++i) {
      const double value = values[i];
      block_sums[i] += value;
      block_squares[i] += value * value;
    }
  }
  for (size_t i = 0; i < kFeatureBlock; ++i) {
    sums[i] += block_sums[i];
    squares[i] += block_squares[i];
  }
}

}  // namespace

FeatureMoments::FeatureMoments(int64_t dims) {
  check(dims > 0, "FeatureMoments: dims must be above 0, got ", dims);
  sums_ = torch::zeros({dims}, torch::kFloat64);
  squares_ = torch::zeros({dims}, torch::kFloat64);
}

void FeatureMoments::update(const torch::Tensor& rows) {
  check(rows.dim() == 2 && rows.size(1) == dims(), "FeatureMoments: rows must be [rows, ", dims(),
        "], got ", rows.sizes());
  const auto floats = rows.to(torch::kFloat32).contiguous();
  const auto* values = floats.data_ptr<float>();
  // Never in place: copies share the tensors.
  sums_ = sums_.clone();
  squares_ = squares_.clone();
  auto* sums = sums_.data_ptr<double>();
  auto* squares = squares_.data_ptr<double>();
  const auto count = floats.size(0);
  const auto width = dims();
  parallel_for(0, (width + kFeatureBlock - 1) / kFeatureBlock, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const auto first = block * kFeatureBlock;
      const auto columns = std::min(kFeatureBlock, width - first);
      if (columns == kFeatureBlock) {
        add_block(values + first, count, width, sums + first, squares + first);
      } else {
        add_columns(values + first, count, width, columns, sums + first, squares + first);
      }
    }
  });
  rows_ += count;
}

void FeatureMoments::merge(const FeatureMoments& other) {
  check(dims() == other.dims(), "FeatureMoments: can merge only dims ", dims(), ", got ",
        other.dims());
  sums_ = sums_ + other.sums_;
  squares_ = squares_ + other.squares_;
  rows_ += other.rows_;
}

double FeatureMoments::total_variance() const {
  check(rows_ > 0, "FeatureMoments: no rows were shown");
  const auto count = static_cast<double>(rows_);
  const auto variances = squares_ / count - (sums_ / count).square();
  return variances.clamp_min(0).sum().item<double>();
}

bool FeatureMoments::is_finite() const { return torch::isfinite(squares_).all().item<bool>(); }

}  // namespace kelvin
