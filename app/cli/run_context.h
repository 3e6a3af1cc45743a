#pragma once

#include "app/cli/progress_bar.h"
#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// Shows progress on `bar`, which must outlive the context, reads the clock, and
// asks to stop after the first interrupt.
RunContext run_context(ProgressBar& bar);

}  // namespace kelvin
