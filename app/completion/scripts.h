#pragma once

#include <map>
#include <string>

namespace kelvin {

// By the name of the shell: what makes it ask the tool for candidates.
const std::map<std::string, std::string>& completion_scripts();

}  // namespace kelvin
