#pragma once

#include <map>
#include <string>

namespace kelvin {

// The Python scripts of app/bench/ by their names without extension, compiled in so that the tool
// works from anywhere.
const std::map<std::string, std::string>& bench_scripts();

}  // namespace kelvin
