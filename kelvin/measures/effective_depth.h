#pragma once

#include <cstddef>
#include <vector>

namespace kelvin {

// The first layer, counted from 1, whose probe reaches `threshold` times the accuracy of the last.
size_t first_sufficient(const std::vector<double>& accuracies, double threshold);

// kappa: the first layer whose probe reaches `threshold` times the accuracy of
// layer `last` (counted from 1), over the number of layers up to `last`.
double effective_depth(const std::vector<double>& accuracies, size_t last, double threshold);

// rho: (best accuracy over layers - the last layer's) / best.
double generalisation_drop(const std::vector<double>& accuracies);

}  // namespace kelvin
