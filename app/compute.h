#pragma once

#include <functional>
#include <string>

#include "app/common_flags.h"
#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// Loads the library and does the work of a verb that looks at a network, with progress on stderr.
// The process's exit code: an interrupt ends the work and says so.  `on_failure` is called, once
// the progress is gone, before whatever ended the work is told.
int compute(
    const std::string& verb, const CommonFlags& flags,
    const std::function<void(const ComputeApi&, const RunContext&)>& work,
    const std::function<void()>& on_failure = [] {});

}  // namespace kelvin
