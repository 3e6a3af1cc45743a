#include "kelvin/statistics/paired_test.h"

#include <cmath>
#include <limits>

#include "kelvin/core/check.h"
#include "kelvin/statistics/summary.h"

namespace kelvin {
namespace {

// The continued fraction of the incomplete beta function by Lentz's method; converges fast for
// x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr int kMostTerms = 500;
  constexpr double kTiny = 1e-300;
  constexpr double kPrecision = 1e-15;
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m <= kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    fraction *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    fraction *= c * d;
    if (std::abs(c * d - 1) < kPrecision) break;
  }
  return fraction;
}

// The regularised incomplete beta function.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double factor = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                 a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return factor * beta_fraction(a, b, x) / a;
  return 1 - factor * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double student_tails(double t, double degrees_of_freedom) {
  check(degrees_of_freedom > 0 && std::isfinite(degrees_of_freedom) && !std::isnan(t),
        "student_tails: needs a number and degrees of freedom above 0, got ", t, " and ",
        degrees_of_freedom);
  if (std::isinf(t)) return 0;
  return incomplete_beta(degrees_of_freedom / 2, 0.5,
                         degrees_of_freedom / (degrees_of_freedom + t * t));
}

PairedTest paired_test(const std::vector<double>& a, const std::vector<double>& b) {
  check(a.size() == b.size() && a.size() >= 2, "paired_test: needs at least two pairs, got ",
        a.size(), " and ", b.size(), " numbers");
  std::vector<double> differences(a.size());
  for (size_t i = 0; i < a.size(); ++i) differences[i] = a[i] - b[i];
  const auto summary = summarise(differences);
  PairedTest test{.difference = summary.mean};
  if (summary.deviation == 0) {
    if (summary.mean == 0) return test;
    test.t = std::copysign(std::numeric_limits<double>::infinity(), summary.mean);
  } else {
    test.t = summary.mean / (summary.deviation / std::sqrt(static_cast<double>(summary.count)));
  }
  test.p = student_tails(test.t, static_cast<double>(summary.count - 1));
  return test;
}

}  // namespace kelvin
