#include "kelvin/math/feature_sketch.h"

#include <torch/types.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/math/row_hash.h"

namespace kelvin {
namespace {

// Below this share of the largest variance a direction of the sample is rounding.
constexpr double kLeastVariance = 1e-6;

// The directions [dims, at most `count`] in which rows vary most, orthonormal, in float32.
torch::Tensor main_directions(const torch::Tensor& rows, int64_t count) {
  auto centred = rows.to(torch::kFloat32, /*non_blocking=*/false, /*copy=*/true);
  centred.sub_(centred.mean(0));
  const auto [values, vectors] =
      torch::linalg_eigh(centred.matmul(centred.t()).to(torch::kFloat64));
  const auto largest = values[-1].item<double>();
  const auto usable =
      largest > 0 ? (values > kLeastVariance * largest).sum().item<int64_t>() : int64_t{0};
  count = std::min(count, usable);
  if (count == 0) return {};
  const auto chosen = vectors.narrow(1, vectors.size(1) - count, count);
  const auto lengths = values.narrow(0, values.size(0) - count, count).sqrt();
  const auto directions = centred.t().matmul((chosen / lengths).to(torch::kFloat32));
  // Directions of small variance are orthonormal only to their share of rounding: once more, by
  // the Cholesky factor of their products.
  const auto products = directions.t().matmul(directions).to(torch::kFloat64);
  const auto factor = torch::linalg_cholesky(products);
  const auto identity = torch::eye(count, torch::kFloat64);
  const auto inverse = at::linalg_solve_triangular(factor, identity, /*upper=*/false);
  return directions.matmul(inverse.t().to(torch::kFloat32)).contiguous();
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
  if (directions.defined()) result.keep(directions);
  return result;
}

FeatureSketch FeatureSketch::enlarged(int64_t size) const {
  FeatureSketch result(dims_, size, seed_);
  if (result.is_exact() || !anchors_.defined()) return result;
  result.keep(anchors_.narrow(1, 0, std::min(anchors_.size(1), result.width_ - 1)));
  return result;
}

void FeatureSketch::keep(const torch::Tensor& anchors) {
  anchors_ = anchors;
  draw();
  hashed_anchors_ = hashed(anchors_.t().contiguous());
}

torch::Tensor FeatureSketch::hashed(const torch::Tensor& rows) const {
  const auto width = hash_width();
  auto sums = torch::zeros({rows.size(0), width}, torch::kFloat32);
  const RowHash hash{
      .dims = dims_, .width = width, .signs = signs_.data_ptr<float>(), .shifts = shifts_.data()};
  add_hashed_rows(hash, rows.data_ptr<float>(), rows.size(0), sums.data_ptr<float>());
  return sums;
}

torch::Tensor FeatureSketch::apply(const torch::Tensor& rows) const {
  check(rows.dim() == 2 && rows.size(1) == dims_, "FeatureSketch: rows must be [rows, ", dims_,
        "], got ", rows.sizes());
  if (is_exact()) return rows;
  const auto floats = rows.to(torch::kFloat32).contiguous();
  const auto rest = hashed(floats);
  if (!anchors_.defined()) return rest;
  const auto along = floats.matmul(anchors_);
  return torch::cat({along, rest - along.matmul(hashed_anchors_)}, 1);
}

bool FeatureSketch::equals(const FeatureSketch& other) const {
  if (dims_ != other.dims_ || width_ != other.width_) return false;
  if (is_exact()) return true;
  return seed_ == other.seed_ && anchors() == other.anchors() &&
         (anchors() == 0 || anchors_.equal(other.anchors_));
}

}  // namespace kelvin
