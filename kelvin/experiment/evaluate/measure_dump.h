#pragma once

#include <filesystem>

#include "kelvin/experiment/run/run.h"

namespace kelvin {

// Measures what is in a dump, see dump.h.  All measures that need no more than that unless the
// request names some.
Readings measure_dump(const std::filesystem::path& npz, const MeasureRequest& request,
                      const RunContext& context);

}  // namespace kelvin
