#pragma once

#include <filesystem>

#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// Measures what somebody else's program dumped: an npz with `logits` [samples, classes] and
// `labels` [samples], optionally `features`, `weight`, `bias` of the classifier, a scalar
// `temperature`, and what layers hand on as `layer/NAME` [samples, ...], in order of their names,
// numbers as numbers; without them the features are the only layer.  All measures that need no more
// than that unless the request names some.
Readings measure_dump(const std::filesystem::path& npz, const MeasureRequest& request,
                      const RunContext& context);

}  // namespace kelvin
