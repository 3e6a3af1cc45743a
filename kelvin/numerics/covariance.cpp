#include "kelvin/numerics/covariance.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "kelvin/core/check.h"
#include "kelvin/numerics/gram.h"

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
  const auto type = products_ == Products::fast ? torch::kFloat32 : torch::kFloat64;
  // The last row is for what joining adds: then it costs no pass over the scatter of its own.
  const auto rows = torch::empty({waiting_rows_ + 1, dims()}, type);
  auto block = rows.narrow(0, 0, waiting_rows_);
  at::cat_out(block, waiting_);
  const auto mean = block.mean(0, /*keepdim=*/false, torch::kFloat64);
  // In float32 off by a rounding of the mean, which rows have themselves.
  block.sub_(mean.to(type));
  const auto count = waiting_rows_;
  waiting_.clear();
  waiting_rows_ = 0;
  rows[count].copy_(move_mean(count, mean));
  const auto product = torch::zeros({dims(), dims()}, type);
  add_lower_product(rows, product);
  scatter_.add_(product);
}

torch::Tensor CovarianceAccumulator::move_mean(int64_t rows, const torch::Tensor& mean) {
  const auto ours = static_cast<double>(rows_);
  const auto theirs = static_cast<double>(rows);
  const auto difference = mean - mean_;
  mean_.add_(difference, theirs / (ours + theirs));
  rows_ += rows;
  return difference * std::sqrt(ours * theirs / (ours + theirs));
}

torch::Tensor CovarianceAccumulator::scatter() const {
  auto whole = scatter_.clone();
  mirror_lower(whole);
  return whole;
}

void CovarianceAccumulator::merge(const CovarianceAccumulator& other) {
  check(dims() == other.dims(), "CovarianceAccumulator: can merge only dims ", dims(), ", got ",
        other.dims());
  if (other.rows() == 0) return;
  finish_block();
  auto theirs = other;
  theirs.finish_block();
  const auto added = move_mean(theirs.rows_, theirs.mean_);
  scatter_.add_(theirs.scatter_).addr_(added, added);
}

torch::Tensor CovarianceAccumulator::singular_values() const {
  check(rows() > 0, "CovarianceAccumulator: no rows were shown");
  if (waiting_rows_ > 0) {
    auto whole = *this;
    whole.finish_block();
    return whole.singular_values();
  }
  const auto squares = torch::linalg_eigvalsh(scatter_, "L").flip(0).clamp_min(0);
  const auto count = std::clamp<int64_t>(rows_ - 1, 1, dims());
  return squares.slice(0, 0, count).sqrt();
}

int64_t CovarianceAccumulator::bytes_for(int64_t dims) {
  const auto scatter = dims * dims * static_cast<int64_t>(sizeof(double));
  return scatter + 2 * kBlockRows * dims * static_cast<int64_t>(sizeof(float));
}

// Rows in one piece, which may have been a batch more than needed, and their products.
int64_t CovarianceAccumulator::bytes_of_adding(int64_t dims) {
  return (2 * kBlockRows + dims) * dims * static_cast<int64_t>(sizeof(double));
}

}  // namespace kelvin
