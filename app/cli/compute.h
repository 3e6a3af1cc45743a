#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "app/cli/common_flags.h"
#include "kelvin/experiment/compute_api.h"

namespace kelvin {

// The running program.
std::filesystem::path executable_path();

// The first of `places` (relative to the executable's folder) that holds the
// file `name`: the build tree and an installation lay files out differently.
std::filesystem::path installed_file(const std::string& name,
                                     const std::vector<std::string>& places);

// Loads libkelvin.so, and with it LibTorch, after preparing the process for `threads` threads.
// Only verbs that compute pay for this.
ComputeLibrary load_compute_library(int64_t threads);

// Loads the library and does the work of a verb that looks at a network, with progress on stderr.
// The process's exit code: an interrupt ends the work and says so.  `on_failure` is called, once
// the progress is gone, before whatever ended the work is told.
int compute(
    const std::string& verb, const CommonFlags& flags,
    const std::function<void(const ComputeLibrary&, const RunContext&)>& work,
    const std::function<void()>& on_failure = [] {});

}  // namespace kelvin
