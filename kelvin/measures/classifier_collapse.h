#pragma once

#include "kelvin/core/reading.h"
#include "kelvin/measures/collapse_readings.h"

namespace kelvin {

// Neural collapse of the classifier's input: NC1, NC2 and NC4 with all variants; if the weight is
// known, NC0 and NC2 of the weight, NC3 (the weight as the dual of the means) and NC4 without the
// bias; NC5 for every OOD dataset.
Readings classifier_collapse_readings(const Collapse& collapse);

}  // namespace kelvin
