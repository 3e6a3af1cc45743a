#pragma once

#include <map>
#include <string>

#include "kelvin/report/page.h"

namespace kelvin {

// Every figure of the page by its name, as an SVG file of its own.
std::map<std::string, std::string> figure_svgs(const PageInput& input);

}  // namespace kelvin
