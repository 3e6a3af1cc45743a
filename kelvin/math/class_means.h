#pragma once

#include <torch/types.h>

#include <cstdint>

namespace kelvin {

// In float64; classes without samples are left out.
struct ClassMeans {
  torch::Tensor means;   // [classes that have samples, dims]
  torch::Tensor counts;  // [classes that have samples]
  torch::Tensor places;  // [samples] int64, which of the means is that of the sample's class
  torch::Tensor mean;    // [dims] of all samples
};

// Of [samples, dims] features, at least one, and labels in [0, classes).
ClassMeans class_means(const torch::Tensor& features, const torch::Tensor& labels, int64_t classes);

}  // namespace kelvin
