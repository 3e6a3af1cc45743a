#include "kelvin/numerics/dispersion.h"

#include <cmath>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

void check_dispersion(const char* where, double n, double spread, double temperature) {
  check(n >= 1 && std::isfinite(n), where, ": n must be at least 1, got ", n);
  check(spread >= 0 && std::isfinite(spread), where,
        ": the spread must be a finite number, not below 0, got ", spread);
  check(temperature > 0 && std::isfinite(temperature), where,
        ": the temperature must be a finite number above 0, got ", temperature);
}

}  // namespace

WeightBounds lemma_bounds(double n, double spread, double temperature) {
  check_dispersion("lemma_bounds", n, spread, temperature);
  const double ratio = spread / temperature;
  return {.low = std::exp(-ratio) / n, .high = std::exp(ratio) / n};
}

WeightBounds sharp_bounds(double n, double spread, double temperature) {
  check_dispersion("sharp_bounds", n, spread, temperature);
  const double ratio = spread / temperature;
  // 1 / infinity is the 0 that it should be; a single logit must not meet 0 * infinity.
  if (n == 1) return {.low = 1, .high = 1};
  return {.low = 1 / (1 + (n - 1) * std::exp(ratio)), .high = 1 / (1 + (n - 1) * std::exp(-ratio))};
}

double least_entropy(double n, double spread, double temperature) {
  check_dispersion("least_entropy", n, spread, temperature);
  return std::log1p((n - 1) * std::exp(-spread / temperature));
}

double dispersion_length(double spread, double temperature, double weight) {
  check_dispersion("dispersion_length", 1, spread, temperature);
  check(weight > 0 && weight < 1, "dispersion_length: the weight must be in (0, 1), got ", weight);
  return 1 + std::exp(spread / temperature) * (1 - weight) / weight;
}

double spectral_norm(const torch::Tensor& matrix) {
  check(matrix.dim() == 2 && matrix.numel() > 0, "spectral_norm: needs a matrix, got ",
        matrix.sizes());
  return torch::linalg_svdvals(matrix.to(torch::kFloat64))[0].item<double>();
}

torch::Tensor spread_bounds(const torch::Tensor& query, const torch::Tensor& key,
                            const torch::Tensor& query_side, const torch::Tensor& item_side,
                            double factor) {
  check(query_side.dim() >= 1 && item_side.dim() == query_side.dim() + 1,
        "spread_bounds: needs y [..., d] and x [..., n, d], got ", query_side.sizes(), " and ",
        item_side.sizes());
  const auto lengths = [](const torch::Tensor& vectors) {
    return vectors.to(torch::kFloat64).norm(2, {-1});
  };
  return 2 * std::abs(factor) * spectral_norm(query) * spectral_norm(key) * lengths(query_side) *
         lengths(item_side).amax(-1);
}

}  // namespace kelvin
