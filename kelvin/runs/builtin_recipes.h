#pragma once

#include <map>
#include <string>

namespace kelvin {

// The files of recipes/ by their names without extension, compiled in so that
// the tool works from anywhere.
const std::map<std::string, std::string>& builtin_recipes();

}  // namespace kelvin
