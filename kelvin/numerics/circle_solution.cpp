#include "kelvin/numerics/circle_solution.h"

#include <cmath>
#include <numbers>

#include "kelvin/core/check.h"
#include "kelvin/ops/numerical_rank.h"

namespace kelvin {
namespace {

// Sums exp(alpha (cos(2 pi k / c) - 1)) over the classes k; the true one, k = 0, contributes 1.
double relative_total(int64_t classes, double scale) {
  double total = 0;
  for (int64_t k = 0; k < classes; ++k) {
    const double half =
        std::sin(std::numbers::pi * static_cast<double>(k) / static_cast<double>(classes));
    total += std::exp(-2 * scale * half * half);
  }
  return total;
}

void check_classes(const char* where, int64_t classes) {
  check(classes >= 2 && classes <= 100'000, where, ": classes must be from 2 to 100000, got ",
        classes);
}

}  // namespace

torch::Tensor circle_weights(int64_t classes) {
  check_classes("circle_weights", classes);
  const auto angles = torch::arange(classes, torch::kFloat64) *
                      (2 * std::numbers::pi / static_cast<double>(classes));
  return torch::stack({angles.cos(), angles.sin()}, 1);
}

double circle_probability(int64_t classes, double scale) {
  check_classes("circle_probability", classes);
  check(std::isfinite(scale) && scale >= 0,
        "circle_probability: the scale must be a finite number, not below 0, got ", scale);
  return 1 / relative_total(classes, scale);
}

double circle_scale(int64_t classes, double probability) {
  check_classes("circle_scale", classes);
  check(probability > 1 / static_cast<double>(classes) && probability < 1,
        "circle_scale: the probability must be between 1 / classes and 1, got ", probability);
  double low = 0;
  double high = 1;
  while (circle_probability(classes, high) < probability) high *= 2;
  constexpr int kHalvings = 100;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = low + (high - low) / 2;
    (circle_probability(classes, middle) < probability ? low : high) = middle;
  }
  return high;
}

CircleCheck check_circle(int64_t classes, double scale, torch::ScalarType type) {
  const auto weights = circle_weights(classes).to(type);
  const auto features = (circle_weights(classes) * scale).to(type);  // one sample of each class
  const auto logits = features.matmul(weights.t());
  const auto labels = torch::arange(classes);
  const auto values = torch::linalg_svdvals(logits.to(torch::kFloat64));
  const auto right = torch::softmax(logits, 1).diagonal();
  return {.rank = numerical_rank(values, 1e-3),
          .beyond = classes > 2 ? (values[2] / values[0]).item<double>() : 0,
          .accuracy = (logits.argmax(1) == labels).to(torch::kFloat64).mean().item<double>(),
          .smallest_probability = right.min().item<double>()};
}

}  // namespace kelvin
