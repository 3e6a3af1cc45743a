#include "kelvin/numerics/neural_collapse.h"

#include <torch/types.h>

#include <cmath>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

// Squared distances below this fraction of the largest squared length are rounding.
constexpr double kRounding = 1e-14;

void check_square(const char* where, const torch::Tensor& matrix) {
  check(matrix.dim() == 2 && matrix.size(0) == matrix.size(1) && matrix.size(0) > 0, where,
        ": must be a square matrix, got ", matrix.sizes());
}

void check_same_rows(const char* where, const torch::Tensor& a, const torch::Tensor& b) {
  check(a.dim() == 2 && a.sizes() == b.sizes(), where, ": must have the same shape, got ",
        a.sizes(), " and ", b.sizes());
}

// The entries above the diagonal: each pair once.
torch::Tensor pairs_of(const torch::Tensor& matrix) {
  const auto places = torch::triu_indices(matrix.size(0), matrix.size(1), /*offset=*/1);
  return matrix.index({places[0], places[1]});
}

// Of all pairs; undefined if a vector is zero or there is no pair.
torch::Tensor pair_cosines(const char* where, const torch::Tensor& gram) {
  check_square(where, gram);
  const auto lengths = gram.diagonal().clamp_min(0).sqrt();
  if (gram.size(0) < 2 || lengths.min().item<double>() <= 0) return {};
  return pairs_of(gram / lengths.unsqueeze(1) / lengths);
}

double population_variance(const torch::Tensor& values) {
  return values.var(/*unbiased=*/false).item<double>();
}

}  // namespace

torch::Tensor simplex_etf(int64_t classes) {
  check(classes >= 2, "simplex_etf: needs at least 2 classes, got ", classes);
  const auto count = static_cast<double>(classes);
  return (torch::eye(classes, torch::kFloat64) - 1 / count) / std::sqrt(count - 1);
}

std::optional<double> etf_error(const torch::Tensor& products) {
  check_square("etf_error", products);
  const auto norm = products.norm().item<double>();
  if (products.size(0) < 2 || norm <= 0) return std::nullopt;
  return (products / norm - simplex_etf(products.size(0))).norm().item<double>();
}

std::optional<double> equinorm(const torch::Tensor& gram) {
  check_square("equinorm", gram);
  const auto lengths = gram.diagonal().clamp_min(0).sqrt();
  const auto mean = lengths.mean().item<double>();
  if (gram.size(0) < 2 || mean <= 0) return std::nullopt;
  return lengths.std(/*unbiased=*/true).item<double>() / mean;
}

std::optional<double> equiangularity(const torch::Tensor& gram) {
  const auto cosines = pair_cosines("equiangularity", gram);
  if (!cosines.defined()) return std::nullopt;
  const auto ideal = -1 / static_cast<double>(gram.size(0) - 1);
  return (cosines - ideal).abs().mean().item<double>();
}

std::optional<double> distance_variance(const torch::Tensor& gram) {
  const auto cosines = pair_cosines("distance_variance", gram);
  if (!cosines.defined()) return std::nullopt;
  return population_variance((2 - 2 * cosines).clamp_min(0).sqrt());
}

std::optional<double> log_distance_variance(const torch::Tensor& gram) {
  const auto cosines = pair_cosines("log_distance_variance", gram);
  if (!cosines.defined()) return std::nullopt;
  const auto squares = 2 - 2 * cosines;
  if (squares.min().item<double>() <= kRounding) return std::nullopt;
  return population_variance(squares.log() / 2);
}

std::optional<double> riesz_variance(const torch::Tensor& gram, int64_t dims) {
  constexpr double kLargestLogarithm = 350;  // whose exponential can be squared, as can its inverse
  check(dims >= 1, "riesz_variance: vectors must have at least 1 entry, got ", dims);
  const auto cosines = pair_cosines("riesz_variance", gram);
  if (!cosines.defined()) return std::nullopt;
  const auto squares = 2 - 2 * cosines;
  if (squares.min().item<double>() <= kRounding) return std::nullopt;
  const auto exponent = static_cast<double>(dims - 2);
  const auto logarithms = -exponent * squares.log() / 2;
  if (logarithms.abs().max().item<double>() > kLargestLogarithm) return std::nullopt;
  return population_variance(logarithms.exp());
}

std::optional<double> trace_of_ratio(const torch::Tensor& within, const torch::Tensor& between,
                                     double cutoff) {
  check_same_rows("trace_of_ratio", within, between);
  if (between.numel() == 0) return std::nullopt;
  const auto [values, vectors] = torch::linalg_eigh(between);
  const auto largest = values[-1].item<double>();
  if (largest <= 0) return std::nullopt;
  const auto along = (vectors * within.matmul(vectors)).sum(0);
  const auto kept = values > cutoff * largest;
  return (along.masked_select(kept) / values.masked_select(kept)).sum().item<double>();
}

std::optional<double> trace_of_whole_ratio(const torch::Tensor& within,
                                           const torch::Tensor& between_diagonal) {
  check_square("trace_of_whole_ratio", within);
  check(between_diagonal.dim() == 1 && between_diagonal.size(0) == within.size(0),
        "trace_of_whole_ratio: needs an entry for each of ", within.size(0), " directions, got ",
        between_diagonal.sizes());
  if (between_diagonal.min().item<double>() <= 0) return std::nullopt;
  return (within.diagonal() / between_diagonal).sum().item<double>();
}

std::optional<double> class_distance_variance(const torch::Tensor& variances,
                                              const torch::Tensor& gram) {
  check_square("class_distance_variance", gram);
  check(variances.dim() == 1 && variances.size(0) == gram.size(0),
        "class_distance_variance: needs a variance of each of ", gram.size(0), " classes, got ",
        variances.sizes());
  if (gram.size(0) < 2) return std::nullopt;
  const auto squares = gram.diagonal();
  const auto distances = pairs_of(squares.unsqueeze(1) + squares - 2 * gram);
  const auto largest = squares.max().item<double>();
  if (distances.min().item<double>() <= kRounding * largest) return std::nullopt;
  const auto sums = pairs_of(variances.unsqueeze(1) + variances);
  return (sums / (2 * distances)).mean().item<double>();
}

std::optional<double> direction_difference(const torch::Tensor& a, const torch::Tensor& b) {
  check_same_rows("direction_difference", a, b);
  const auto norm_of_a = a.norm().item<double>();
  const auto norm_of_b = b.norm().item<double>();
  if (norm_of_a <= 0 || norm_of_b <= 0) return std::nullopt;
  return (a / norm_of_a - b / norm_of_b).norm().item<double>();
}

std::optional<double> dual_variance(const torch::Tensor& weight, const torch::Tensor& means) {
  check_same_rows("dual_variance", weight, means);
  if (weight.size(0) < 2) return std::nullopt;
  return (weight * means).sum(1).var(/*unbiased=*/true).item<double>();
}

std::optional<double> mean_absolute_cosine(const torch::Tensor& rows,
                                           const torch::Tensor& direction) {
  check(rows.dim() == 2 && direction.dim() == 1 && rows.size(1) == direction.size(0),
        "mean_absolute_cosine: rows and direction must be [rows, dims] and [dims], got ",
        rows.sizes(), " and ", direction.sizes());
  const auto lengths = rows.norm(2, 1);
  const auto length = direction.norm().item<double>();
  if (rows.size(0) == 0 || lengths.min().item<double>() <= 0 || length <= 0) return std::nullopt;
  return (rows.mv(direction).abs() / lengths / length).mean().item<double>();
}

}  // namespace kelvin
