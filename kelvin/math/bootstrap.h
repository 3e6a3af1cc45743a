#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "kelvin/core/reading.h"

namespace kelvin {

struct BootstrapOptions {
  int64_t resamples = 1000;
  uint64_t seed = 0;
};

// [resamples, rows] means of the rows of `values` [rows, samples] over as many samples drawn with
// replacement, the same ones for all rows.
torch::Tensor bootstrap_means(const torch::Tensor& values, const BootstrapOptions& options = {});

// Between the percentiles that leave out (1 - level) / 2 on either side, linear between numbers.
Interval percentile_interval(std::vector<double> numbers, double level = 0.95);

}  // namespace kelvin
