#include "kelvin/numerics/spectrum.h"

#include <torch/types.h>

#include <algorithm>

#include "kelvin/core/check.h"
#include "kelvin/numerics/gram.h"

namespace kelvin {
namespace {

torch::Tensor checked_values(const char* where, const torch::Tensor& singular_values) {
  check(singular_values.dim() == 1 && singular_values.size(0) > 0, where,
        ": needs a list of singular values, got ", singular_values.sizes());
  auto values = singular_values.to(torch::kFloat64);
  check(values.max().item<double>() > 0, where, ": needs a singular value above 0, got none");
  return values;
}

double exponential_of_entropy(const torch::Tensor& fractions) {
  return torch::xlogy(fractions, fractions).sum().neg().exp().item<double>();
}

}  // namespace

GramAccumulator::GramAccumulator(int64_t dims) {
  check(dims > 0, "GramAccumulator: dims must be above 0, got ", dims);
  gram_ = torch::zeros({dims, dims}, torch::kFloat64);
}

GramAccumulator GramAccumulator::from_state(const torch::Tensor& gram, int64_t rows) {
  GramAccumulator accumulator(gram.size(0));
  accumulator.gram_ = gram.clone();
  accumulator.rows_ = rows;
  return accumulator;
}

void GramAccumulator::update(const torch::Tensor& rows) {
  check(rows.dim() == 2 && rows.size(1) == gram_.size(0), "GramAccumulator: rows must be [rows, ",
        gram_.size(0), "], got ", rows.sizes());
  const auto gram = parallel_gram(rows.size(0), rows.size(1), [&](int64_t begin, int64_t end) {
    return rows.slice(0, begin, end).to(torch::kFloat64);
  });
  // A square in the diagonal is not finite as soon as one number is not.
  check(torch::isfinite(gram.diagonal()).all().item<bool>(),
        "GramAccumulator: rows must be finite, got a NaN or an infinity");
  // Never in place: copies of an accumulator and states handed out share the tensor.
  gram_ = gram_ + gram;
  rows_ += rows.size(0);
}

void GramAccumulator::merge(const GramAccumulator& other) {
  check(gram_.sizes() == other.gram_.sizes(), "GramAccumulator: can merge only dims ",
        gram_.size(0), ", got ", other.gram_.size(0));
  gram_ = gram_ + other.gram_;
  rows_ += other.rows_;
}

torch::Tensor GramAccumulator::singular_values() const {
  check(rows_ > 0, "GramAccumulator: no rows were shown");
  const auto eigenvalues = torch::linalg_eigvalsh(gram_).flip(0).clamp_min(0);
  return eigenvalues.slice(0, 0, std::min(rows_, gram_.size(0))).sqrt();
}

double GramAccumulator::frobenius_norm() const {
  return gram_.diagonal().sum().sqrt().item<double>();
}

double effective_rank(const torch::Tensor& singular_values) {
  const auto values = checked_values("effective_rank", singular_values);
  return exponential_of_entropy(values / values.sum());
}

double rankme(const torch::Tensor& singular_values) {
  constexpr double kSmall = 1e-7;
  const auto values = checked_values("rankme", singular_values);
  return exponential_of_entropy(values / values.sum() + kSmall);
}

double stable_rank(const torch::Tensor& singular_values) {
  // Over the largest first: squares of large numbers overflow.
  const auto values = checked_values("stable_rank", singular_values);
  return (values / values.max()).square().sum().item<double>();
}

double participation_ratio(const torch::Tensor& singular_values) {
  const auto values = checked_values("participation_ratio", singular_values);
  const auto squares = (values / values.max()).square();
  return (squares.sum().square() / squares.square().sum()).item<double>();
}

}  // namespace kelvin
