#pragma once

#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// Fits detectors on a dump of training samples and scores dumps of known and of OOD ones, see
// dump.h; all of the same network.  The classifier's weight and the temperature are those of
// `id_train`, unless `measure.temperature` is set.  All detectors that the dumps have enough for
// unless the settings name some.
Readings detect_in_dumps(const DetectRequest& request, const RunContext& context);

}  // namespace kelvin
