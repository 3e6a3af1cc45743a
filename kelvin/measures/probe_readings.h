#pragma once

#include <string>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/measures/probes.h"

namespace kelvin {

// probe_accuracy of every layer, each with its interval; then kappa, or on a foreign dataset `ood`
// rho and ood_retained.  Intervals come from one set of resampled test samples for all layers.
Readings probe_readings(const std::vector<ProbeResult>& probes, const std::string& ood,
                        const ProbeOptions& options);

}  // namespace kelvin
