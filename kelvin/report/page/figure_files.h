#pragma once

#include <map>
#include <string>

#include "kelvin/report/page/page.h"

namespace kelvin {

// Every figure of the page by its name, as an SVG file of its own.
std::map<std::string, std::string> figure_svgs(const PageInput& input);

// The data of every figure of the page by the figure's name, as CSV; and, as "fit-and-collapse",
// what the page says of each run in a sentence (tables/collapse_steps.h).
std::map<std::string, std::string> figure_csvs(const PageInput& input);

}  // namespace kelvin
