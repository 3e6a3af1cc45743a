#pragma once

#include <string>

namespace kelvin {

// Manual pages in man(7)'s language: of the tool, and of a verb with its jobs.
std::string man_page();
std::string man_page(const std::string& verb);

}  // namespace kelvin
