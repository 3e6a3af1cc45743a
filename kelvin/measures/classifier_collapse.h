#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "kelvin/core/reading.h"
#include "kelvin/measures/collapse_readings.h"

namespace kelvin {

// Neural collapse of the classifier's input: NC1, NC2 and NC4 with all variants; if the weight is
// known, NC0 and NC2 of the weight, NC3 (the weight as the dual of the means) and NC4 without the
// bias; NC5 for every OOD dataset.
Readings classifier_collapse_readings(const Collapse& collapse);

// OrthoDev (NC5) of the OOD dataset `ood`, whose `samples` features [dims] add up to `sum`, against
// class means [classes, dims] that are not centred.  Nothing if a mean has no direction.
std::optional<Reading> orthodev_reading(const torch::Tensor& class_means, const std::string& ood,
                                        const torch::Tensor& sum, int64_t samples);

}  // namespace kelvin
