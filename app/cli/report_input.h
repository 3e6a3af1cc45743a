#pragma once

#include <filesystem>
#include <vector>

#include "kelvin/report/page/page.h"

namespace kelvin {

// All runs in or below `roots`, with title, claims and command of the first
// recipe that was run there, if any.  Throws an Error if there is no run.
PageInput page_input(const std::vector<std::filesystem::path>& roots);

// Makes the folder of `path` where it is missing.
void write_page(const PageInput& input, const std::filesystem::path& path);

}  // namespace kelvin
