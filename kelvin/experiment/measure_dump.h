#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kelvin/core/reading.h"

namespace kelvin {

// Measures what somebody else's program dumped: an npz with `logits`
// [samples, classes] and `labels` [samples], optionally `features`, `weight`,
// `bias` of the classifier and a scalar `temperature`.  All measures that need
// no more than that when `names` is empty.
Readings measure_dump(const std::filesystem::path& npz, const std::vector<std::string>& names);

}  // namespace kelvin
