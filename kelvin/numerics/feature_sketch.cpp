#include "kelvin/numerics/feature_sketch.h"

#include <torch/types.h>

#include <algorithm>
#include <bit>

#include "kelvin/core/check.h"
#include "kelvin/kernels/instruction_sets.h"
#include "kelvin/numerics/gram.h"
#include "kelvin/ops/parallel_for.h"

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

namespace {

constexpr uint32_t kExponent = 0x7f800000;
constexpr uint16_t kQuiet = 0x0040;  // keeps a NaN one when its lower half is cut off

KELVIN_VECTOR_CLONES void round_row(const float* row, const float* mean, int64_t count,
                                    uint16_t* __restrict to) {
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<uint32_t>(row[i] - mean[i]);
    const uint32_t to_even = 0x7fff + ((bits >> 16) & 1);
    const auto rounded = static_cast<uint16_t>((bits + to_even) >> 16);
    const auto cut = static_cast<uint16_t>((bits >> 16) | kQuiet);
    to[i] = (bits & 0x7fffffff) > kExponent ? cut : rounded;
  }
}

}  // namespace

torch::Tensor centred_rounding(const torch::Tensor& rows, const torch::Tensor& mean) {
  check(rows.dim() == 2 && mean.dim() == 1 && rows.size(1) == mean.size(0) &&
            rows.scalar_type() == torch::kFloat32 && mean.scalar_type() == torch::kFloat32,
        "centred_rounding: needs float32 rows [count, dims] and mean [dims], got ", rows.sizes(),
        " and ", mean.sizes());
  const auto values = rows.contiguous();
  const auto offsets = mean.contiguous();
  auto rounded = torch::empty(rows.sizes(), torch::kBFloat16);
  const auto dims = rows.size(1);
  const auto* from = values.data_ptr<float>();
  auto* to = reinterpret_cast<uint16_t*>(rounded.data_ptr<at::BFloat16>());
  parallel_for(0, rows.size(0), 1, [&](int64_t begin, int64_t end) {
    for (auto i = begin; i < end; ++i) {
      round_row(from + i * dims, offsets.data_ptr<float>(), dims, to + i * dims);
    }
  });
  return rounded;
}

namespace {

// Below this fraction of the largest variance a direction of the sample is rounding.
constexpr double kLeastVariance = 1e-6;

bool has_bfloat16_products() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") > 0 && at::globalContext().userEnabledMkldnn();
#else
  return false;
#endif
}

// Columns of a sample that are worked on at a time, so that they stay in the cache.
constexpr int64_t kBlock = 4096;

// Columns [rows, width] around their mean, in float32.
torch::Tensor centred_columns(const torch::Tensor& rows, int64_t begin) {
  auto columns = rows.slice(1, begin, begin + kBlock).to(torch::kFloat32, false, /*copy=*/true);
  return columns.sub_(columns.mean(0));
}

// Of all pairs of rows around their mean: summed in float64 over blocks of float32 products.
torch::Tensor sample_products(const torch::Tensor& rows) {
  const auto count = rows.size(0);
  auto products = torch::zeros({count, count}, torch::kFloat64);
  for (int64_t begin = 0; begin < rows.size(1); begin += kBlock) {
    const auto of_block = torch::zeros({count, count}, torch::kFloat32);
    add_lower_product(centred_columns(rows, begin).t(), of_block);
    products.add_(of_block);
  }
  mirror_lower(products);
  return products;
}

// Sums [dims, count] of rows around their mean, weighted by the columns of `weights` [rows, count],
// in float32 or, where that is multiplied faster and rows have no more digits, in bfloat16.
torch::Tensor sums_of_rows(const torch::Tensor& rows, const torch::Tensor& weights) {
  if (has_bfloat16_products() && rows.scalar_type() == torch::kBFloat16) {
    const auto rounded = weights.to(torch::kBFloat16);
    const auto sums = rows.t().matmul(rounded);
    // Weights of rows around their mean sum up to 0, but not once they are rounded.
    return sums.addr_(rows.mean(0, /*keepdim=*/false), rounded.sum(0), 1, -1);
  }
  const auto floats = weights.to(torch::kFloat32);
  const auto sums = torch::empty({rows.size(1), weights.size(1)}, torch::kFloat32);
  for (int64_t begin = 0; begin < rows.size(1); begin += kBlock) {
    auto block = sums.slice(0, begin, begin + kBlock);
    at::mm_out(block, centred_columns(rows, begin).t(), floats);
  }
  return sums;
}

// The directions [dims, at most `count`] in which rows vary most, orthonormal to the precision of
// what sums_of_rows gives.
torch::Tensor main_directions(const torch::Tensor& rows, int64_t count) {
  const auto [values, vectors] = torch::linalg_eigh(sample_products(rows));
  const auto largest = values[-1].item<double>();
  const auto usable =
      largest > 0 ? (values > kLeastVariance * largest).sum().item<int64_t>() : int64_t{0};
  count = std::min(count, usable);
  if (count == 0) return {};
  const auto chosen = vectors.narrow(1, vectors.size(1) - count, count);
  const auto lengths = values.narrow(0, values.size(0) - count, count).sqrt();
  const auto directions = sums_of_rows(rows, chosen / lengths);
  // Directions of small variance are orthonormal only to their share of rounding: once more, by
  // the Cholesky factor of their products.
  auto products = torch::zeros({count, count}, torch::kFloat64);
  for (const auto& block : directions.split(kBlock)) {
    const auto floats = block.to(torch::kFloat32);
    products.add_(floats.t().matmul(floats));
  }
  const auto factor = torch::linalg_cholesky(products);
  const auto identity = torch::eye(count, torch::kFloat64);
  const auto inverse = at::linalg_solve_triangular(factor, identity, /*upper=*/false);
  return directions.matmul(inverse.t().to(directions.scalar_type()));
}

}  // namespace

FeatureSketch::FeatureSketch(int64_t dims, int64_t size, uint64_t seed)
    : dims_(dims), width_(std::min(dims, size)), seed_(seed) {
  check(dims > 0 && size > 0, "FeatureSketch: dims and size must be above 0, got ", dims, " and ",
        size);
  if (!is_exact()) draw();
}

// Signs first, so that they are the same with anchors and without.
void FeatureSketch::draw() {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed_);
  signs_ = torch::randint(0, 2, {dims_}, generator, torch::kFloat32) * 2 - 1;
  const auto width = hash_width();
  const auto blocks = (dims_ + width - 1) / width;
  const auto shifts = torch::randint(0, width, {blocks}, generator, torch::kInt64);
  shifts_.assign(shifts.data_ptr<int64_t>(), shifts.data_ptr<int64_t>() + blocks);
}

FeatureSketch FeatureSketch::anchored(const torch::Tensor& sample, int64_t anchors) const {
  check(sample.dim() == 2 && sample.size(1) == dims_, "FeatureSketch: the sample must be [rows, ",
        dims_, "], got ", sample.sizes());
  FeatureSketch result(dims_, width_, seed_);
  if (is_exact()) return result;
  // One number at least is left for the rest.
  const auto directions = main_directions(sample, std::min(anchors, width_ - 1));
  if (!directions.defined()) return result;
  const auto mean = sample.mean(0, /*keepdim=*/false, torch::kFloat32);
  result.keep(directions.to(has_bfloat16_products() ? torch::kBFloat16 : torch::kFloat32), mean);
  return result;
}

FeatureSketch FeatureSketch::enlarged(int64_t size) const {
  FeatureSketch result(dims_, size, seed_);
  if (result.is_exact() || !anchors_.defined()) return result;
  result.keep(anchors_.narrow(1, 0, std::min(anchors_.size(1), result.width_ - 1)), sample_mean_);
  return result;
}

void FeatureSketch::keep(const torch::Tensor& anchors, const torch::Tensor& sample_mean) {
  anchors_ = anchors;
  sample_mean_ = sample_mean;
  draw();
  const auto floats = anchors_.t().to(torch::kFloat32).contiguous();
  hashed_anchors_ = hashed(floats);
  mean_along_anchors_ = floats.mv(sample_mean_);
}

torch::Tensor FeatureSketch::hashed(const torch::Tensor& rows) const {
  const auto width = hash_width();
  auto sums = torch::zeros({rows.size(0), width}, torch::kFloat32);
  const RowHash hash{
      .dims = dims_, .width = width, .signs = signs_.data_ptr<float>(), .shifts = shifts_.data()};
  add_hashed_rows(hash, rows.data_ptr<float>(), rows.size(0), sums.data_ptr<float>());
  return sums;
}

// Products of bfloat16 are twice as fast where the processor has them.  A number that is rounded to
// it is off by up to 0.4 %, by chance, so a sum of thousands of them hardly is, and the rounding of
// the sum adds a millionth to the variance; around the mean, so that a large one costs no digits.
torch::Tensor FeatureSketch::along_anchors(const torch::Tensor& rows) const {
  if (!has_rounded_anchors()) {
    return rows.sub(sample_mean_).matmul(anchors_).add_(mean_along_anchors_);
  }
  const auto around_mean = centred_rounding(rows, sample_mean_).matmul(anchors_);
  return around_mean.to(torch::kFloat32).add_(mean_along_anchors_);
}

torch::Tensor FeatureSketch::apply(const torch::Tensor& rows) const {
  check(rows.dim() == 2 && rows.size(1) == dims_, "FeatureSketch: rows must be [rows, ", dims_,
        "], got ", rows.sizes());
  if (is_exact()) return rows;
  const auto floats = rows.to(torch::kFloat32).contiguous();
  auto rest = hashed(floats);
  if (!anchors_.defined()) return rest;
  const auto along = along_anchors(floats);
  return torch::cat({along, rest.addmm_(along, hashed_anchors_, 1, -1)}, 1);
}

bool FeatureSketch::equals(const FeatureSketch& other) const {
  if (dims_ != other.dims_ || width_ != other.width_) return false;
  if (is_exact()) return true;
  return seed_ == other.seed_ && anchors() == other.anchors() &&
         (anchors() == 0 || anchors_.equal(other.anchors_));
}

}  // namespace kelvin
