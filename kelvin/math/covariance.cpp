#include "kelvin/math/covariance.h"

#include <torch/types.h>

#include <algorithm>

#include "kelvin/core/check.h"

namespace kelvin {
CovarianceAccumulator::CovarianceAccumulator(int64_t dims, Products products)
    : products_(products) {
  check(dims > 0, "CovarianceAccumulator: dims must be above 0, got ", dims);
  mean_ = torch::zeros({dims}, torch::kFloat64);
  scatter_ = torch::zeros({dims, dims}, torch::kFloat64);
}

CovarianceAccumulator::CovarianceAccumulator(const CovarianceAccumulator& other)
    : products_(other.products_),
      rows_(other.rows_),
      mean_(other.mean_.clone()),
      scatter_(other.scatter_.clone()),
      waiting_(other.waiting_),
      waiting_rows_(other.waiting_rows_) {}

CovarianceAccumulator& CovarianceAccumulator::operator=(const CovarianceAccumulator& other) {
  if (this == &other) return *this;
  products_ = other.products_;
  rows_ = other.rows_;
  mean_ = other.mean_.clone();
  scatter_ = other.scatter_.clone();
  waiting_ = other.waiting_;
  waiting_rows_ = other.waiting_rows_;
  return *this;
}

void CovarianceAccumulator::update(const torch::Tensor& rows) {
  check(rows.dim() == 2 && rows.size(1) == dims(), "CovarianceAccumulator: rows must be [rows, ",
        dims(), "], got ", rows.sizes());
  check(torch::isfinite(rows).all().item<bool>(),
        "CovarianceAccumulator: rows must be finite, got a NaN or an infinity");
  if (rows.size(0) == 0) return;
  waiting_.push_back(rows);
  waiting_rows_ += rows.size(0);
  if (waiting_rows_ >= kBlockRows) finish_block();
}

void CovarianceAccumulator::finish_block() {
  if (waiting_rows_ == 0) return;
  const auto rows = torch::cat(waiting_).to(torch::kFloat64);
  const auto mean = rows.mean(0);
  auto centred = rows - mean;
  if (products_ == Products::fast) centred = centred.to(torch::kFloat32);
  const auto count = waiting_rows_;
  waiting_.clear();
  waiting_rows_ = 0;
  join(count, mean, centred.t().matmul(centred));
}

void CovarianceAccumulator::join(int64_t rows, const torch::Tensor& mean,
                                 const torch::Tensor& scatter) {
  const auto ours = static_cast<double>(rows_);
  const auto theirs = static_cast<double>(rows);
  const auto difference = mean - mean_;
  scatter_.add_(scatter);
  scatter_.addr_(difference, difference, /*beta=*/1, /*alpha=*/ours * theirs / (ours + theirs));
  mean_.add_(difference, theirs / (ours + theirs));
  rows_ += rows;
}

void CovarianceAccumulator::merge(const CovarianceAccumulator& other) {
  check(dims() == other.dims(), "CovarianceAccumulator: can merge only dims ", dims(), ", got ",
        other.dims());
  if (other.rows() == 0) return;
  finish_block();
  auto theirs = other;
  theirs.finish_block();
  join(theirs.rows_, theirs.mean_, theirs.scatter_);
}

torch::Tensor CovarianceAccumulator::singular_values() const {
  check(rows() > 0, "CovarianceAccumulator: no rows were shown");
  if (waiting_rows_ > 0) {
    auto whole = *this;
    whole.finish_block();
    return whole.singular_values();
  }
  const auto squares = torch::linalg_eigvalsh(scatter_).flip(0).clamp_min(0);
  const auto count = std::clamp<int64_t>(rows_ - 1, 1, dims());
  return squares.slice(0, 0, count).sqrt();
}

int64_t CovarianceAccumulator::bytes_for(int64_t dims) {
  const auto scatter = dims * dims * static_cast<int64_t>(sizeof(double));
  return scatter + 2 * kBlockRows * dims * static_cast<int64_t>(sizeof(float));
}

}  // namespace kelvin
