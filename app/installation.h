#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kelvin {

// The running program.
std::filesystem::path executable_path();

// The first of `places` (relative to the executable's folder) that holds the
// file `name`: the build tree and an installation lay files out differently.
std::filesystem::path installed_file(const std::string& name,
                                     const std::vector<std::string>& places);

}  // namespace kelvin
