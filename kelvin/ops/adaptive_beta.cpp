#include "kelvin/ops/adaptive_beta.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "kelvin/core/check.h"
#include "kelvin/ops/softmax.h"

namespace kelvin {
namespace {

constexpr double kNoEntropy = std::numeric_limits<double>::infinity();

struct PolynomialAt {
  double value = 0;
  double slope = 0;
};

PolynomialAt polynomial_at(const std::array<double, 5>& coefficients, double entropy) {
  PolynomialAt at;
  for (const double coefficient : coefficients) {
    at.slope = at.slope * entropy + at.value;
    at.value = at.value * entropy + coefficient;
  }
  return at;
}

// Beyond an entropy, beta is a line.
struct Bend {
  double entropy = kNoEntropy;
  double beta = 0;
  double slope = 0;
};

// At the highest of the polynomial's maxima beyond the threshold; nowhere if there is none below 64
// nats, which is more than any row has.
Bend bend_of(const AdaptiveSoftmaxOptions& options) {
  if (options.past_the_peak == PastThePeak::fall) return {};
  const auto slope_at = [&](double entropy) {
    return polynomial_at(options.coefficients, entropy).slope;
  };
  constexpr double kStep = 1.0 / 16;
  Bend bend;
  for (double low = options.threshold; low < 64; low += kStep) {
    double high = low + kStep;
    if (!(slope_at(low) > 0 && slope_at(high) <= 0)) continue;
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (slope_at(middle) > 0 ? low : high) = middle;
    }
    const double beta = polynomial_at(options.coefficients, low).value;
    if (bend.entropy == kNoEntropy || beta > bend.beta) bend = {.entropy = low, .beta = beta};
    low = high - kStep;
  }
  if (options.past_the_peak == PastThePeak::grow && bend.entropy < kNoEntropy) {
    bend.slope = bend.beta / bend.entropy;
  }
  return bend;
}

}  // namespace

PastThePeak past_the_peak_named(const std::string& where, const std::string& name) {
  static const std::map<std::string, PastThePeak> choices = {
      {"fall", PastThePeak::fall}, {"hold", PastThePeak::hold}, {"grow", PastThePeak::grow}};
  const auto found = choices.find(name);
  check(found != choices.end(), where, ": must be fall, hold or grow, got '", name, "'");
  return found->second;
}

void check_adaptive_options(const char* where, const AdaptiveSoftmaxOptions& options) {
  check_temperature(where, options.temperature);
  check(std::isfinite(options.floor) && options.floor > 0, where,
        ": the floor of beta must be a finite number above 0, got ", options.floor);
  check(options.threshold >= 0, where, ": the threshold of the entropy must not be negative, got ",
        options.threshold);
  check(std::all_of(options.coefficients.begin(), options.coefficients.end(),
                    [](double coefficient) { return std::isfinite(coefficient); }),
        where, ": the coefficients of beta must be finite numbers");
}

torch::Tensor adaptive_beta(const torch::Tensor& entropies, const AdaptiveSoftmaxOptions& options) {
  check_adaptive_options("adaptive_beta", options);
  const auto bend = bend_of(options);
  auto betas = torch::full_like(entropies, options.coefficients.front());
  for (size_t i = 1; i < options.coefficients.size(); ++i) {
    betas = betas * entropies + options.coefficients[i];
  }
  if (bend.entropy < kNoEntropy) {
    const auto line = (entropies - bend.entropy) * bend.slope + bend.beta;
    betas = torch::where(entropies > bend.entropy, line, betas);
  }
  return betas.clamp_min(options.floor).masked_fill(entropies <= options.threshold, 1);
}

AdaptiveCurve adaptive_curve(const AdaptiveSoftmaxOptions& options) {
  const auto bend = bend_of(options);
  return {.coefficients = options.coefficients,
          .floor = options.floor,
          .threshold = options.threshold,
          .bend = bend.entropy,
          .at_bend = bend.beta,
          .slope_beyond = bend.slope};
}

bool suits_adaptive_kernel(const AdaptiveSoftmaxOptions& options) {
  constexpr double kLeast = 1e-15;
  constexpr double kMost = 1e10;
  return options.temperature >= kLeast && options.temperature <= kMost && options.floor >= kLeast &&
         options.floor <= kMost &&
         std::all_of(options.coefficients.begin(), options.coefficients.end(),
                     [](double coefficient) { return std::abs(coefficient) <= kMost; });
}

}  // namespace kelvin
