#include "kelvin/numerics/singular_gap.h"

#include <algorithm>
#include <cmath>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

// Probabilities that were computed in float32 sum to 1 up to its rounding.
constexpr double kMostOff = 1e-4;

// Of many columns only the largest is not 0, which the small Gram matrix of the rows has as well.
double largest_of_many(const torch::Tensor& columns) {
  const auto squares = torch::linalg_eigvalsh(columns.matmul(columns.t()));
  return std::sqrt(std::max(squares[-1].item<double>(), 0.0));
}

}  // namespace

SingularGap singular_gap(const torch::Tensor& columns) {
  check(columns.dim() == 2 && columns.numel() > 0, "singular_gap: needs a matrix, got ",
        columns.sizes());
  const auto s = columns.to(torch::kFloat64);
  const auto sums = s.sum(0);
  // Written so that a NaN fails as well.
  check(s.min().item<double>() >= 0 && (sums - 1).abs().max().item<double>() <= kMostOff,
        "singular_gap: columns must be probabilities that sum to 1, got entries from ",
        s.min().item<double>(), " and sums from ", sums.min().item<double>(), " to ",
        sums.max().item<double>());
  SingularGap result;
  if (s.size(1) > s.size(0)) {
    result.largest = largest_of_many(s);
  } else {
    const auto values = torch::linalg_svdvals(s);
    result.largest = values[0].item<double>();
    result.smallest = values[-1].item<double>();
  }
  const auto with_all = s.t().mv(s.sum(1));
  const auto others = with_all - s.square().sum(0);
  // No inner product is negative; differences of sums may be, by rounding.
  result.similarity = std::max(others.max().item<double>(), 0.0);
  const auto least = 1 / static_cast<double>(s.size(0)) - result.similarity;
  result.bound = std::sqrt(1 + result.similarity) - std::sqrt(std::max(least, 0.0));
  return result;
}

}  // namespace kelvin
