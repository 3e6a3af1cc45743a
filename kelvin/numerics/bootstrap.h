#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/statistics/detection_curve.h"

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

// Where the numbers of DetectionQuality may lie, given the samples: 95 % intervals.
struct DetectionIntervals {
  Interval auroc;  // DeLong's, normal, cut off at 0 and 1
  // Percentiles of resamples of both populations:
  Interval aupr_in;
  Interval aupr_out;
  Interval fpr95_id;
  Interval fpr95_ood;
};

DetectionIntervals detection_intervals(const DetectionCurve& curve,
                                       const BootstrapOptions& options = {});

}  // namespace kelvin
