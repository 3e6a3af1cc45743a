#include "kelvin/measures/effective_depth.h"

#include <algorithm>

#include "kelvin/core/check.h"

namespace kelvin {

size_t first_sufficient(const std::vector<double>& accuracies, double threshold) {
  check(!accuracies.empty(), "first_sufficient: needs at least one layer");
  const double wanted = threshold * accuracies.back();
  const auto reached = std::find_if(accuracies.begin(), accuracies.end() - 1,
                                    [&](double accuracy) { return accuracy >= wanted; });
  return static_cast<size_t>(reached - accuracies.begin()) + 1;
}

double effective_depth(const std::vector<double>& accuracies, size_t last, double threshold) {
  check(last >= 1 && last <= accuracies.size(), "effective_depth: last must be in [1, ",
        accuracies.size(), "], got ", last);
  const std::vector<double> considered(accuracies.begin(), accuracies.begin() + long(last));
  return static_cast<double>(first_sufficient(considered, threshold)) / static_cast<double>(last);
}

double generalisation_drop(const std::vector<double>& accuracies) {
  check(!accuracies.empty(), "generalisation_drop: needs at least one layer");
  const double best = *std::max_element(accuracies.begin(), accuracies.end());
  check(best > 0, "generalisation_drop: is undefined when no layer gets a sample right");
  return (best - accuracies.back()) / best;
}

}  // namespace kelvin
