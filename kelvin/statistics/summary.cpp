#include "kelvin/statistics/summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

// The 0.975 quantile of Student's t for 1..30 degrees of freedom (any table; SciPy's t.ppf(0.975)).
constexpr std::array<double, 30> kQuantiles = {
    12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004,
    2.262157,  2.228139, 2.200985, 2.178813, 2.160369, 2.144787, 2.131450, 2.119905,
    2.109816,  2.100922, 2.093024, 2.085963, 2.079614, 2.073873, 2.068658, 2.063899,
    2.059539,  2.055529, 2.051831, 2.048407, 2.045230, 2.042272};

double student_quantile(int64_t degrees_of_freedom) {
  if (degrees_of_freedom <= static_cast<int64_t>(kQuantiles.size())) {
    return kQuantiles.at(static_cast<size_t>(degrees_of_freedom - 1));
  }
  // Cornish-Fisher expansion around the normal quantile: below 1e-5 off for more than 30.
  const double z = 1.959964;
  const double n = static_cast<double>(degrees_of_freedom);
  return z + (z * z * z + z) / (4 * n) +
         (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * n * n) +
         (3 * std::pow(z, 7) + 19 * std::pow(z, 5) + 17 * z * z * z - 15 * z) / (384 * n * n * n);
}

}  // namespace

Summary summarise(const std::vector<double>& values) {
  check(!values.empty(), "summarise: needs at least one value, got none");
  Summary summary;
  summary.count = static_cast<int64_t>(values.size());
  const double count = static_cast<double>(values.size());
  summary.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  const auto [smallest, largest] = std::minmax_element(values.begin(), values.end());
  summary.smallest = *smallest;
  summary.largest = *largest;
  if (values.size() == 1) return summary;

  double squares = 0;
  for (const double value : values) squares += (value - summary.mean) * (value - summary.mean);
  summary.deviation = std::sqrt(squares / (count - 1));
  summary.half_width = student_quantile(summary.count - 1) * summary.deviation / std::sqrt(count);
  return summary;
}

}  // namespace kelvin
