#pragma once

#include <map>
#include <string>

#include "kelvin/report/page.h"

namespace kelvin {

// The data of every figure of the page by the figure's name, as CSV.
std::map<std::string, std::string> figure_csvs(const PageInput& input);

}  // namespace kelvin
