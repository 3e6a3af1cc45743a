#pragma once

#include "kelvin/core/detection_curve.h"
#include "kelvin/core/reading.h"
#include "kelvin/math/bootstrap.h"

namespace kelvin {

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
