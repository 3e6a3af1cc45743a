#pragma once

#include <map>
#include <string>
#include <string_view>

namespace kelvin {

// Safe between tags and inside quoted attributes, in HTML and SVG.  Bytes that
// are not UTF-8 or not allowed in XML become U+FFFD.
std::string escape_html(std::string_view text);

// Letters, digits and dashes only: for ids and file names.
std::string slug(std::string_view text);

// The files of kelvin/report/assets, style sheets and scripts, by their names without extension;
// embedded at build time.
const std::map<std::string, std::string>& report_assets();

}  // namespace kelvin
