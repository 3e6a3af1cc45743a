#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kelvin {

// Safe between tags and inside quoted attributes, in HTML and SVG.  Bytes that
// are not UTF-8 or not allowed in XML become U+FFFD.
std::string escape_html(std::string_view text);

// Letters, digits and dashes only: for ids and file names.
std::string slug(std::string_view text);

// Elements of a page.  What is called text gets escaped, what is called html must be already.
std::string paragraph(const std::string& html, const std::string& classes = "");
std::string heading(const std::string& text);
std::string strong(const std::string& text);
// Closed until somebody asks for it.
std::string details(const std::string& summary_text, const std::string& html);
// Small print, an item per text; nothing if there are none.
std::string note_list(const std::vector<std::string>& texts);

// "1 run", "2 runs".
std::string counted(size_t count, const std::string& thing);

// The files of kelvin/report/assets, style sheets and scripts, by their names without extension;
// embedded at build time.
const std::map<std::string, std::string>& report_assets();

}  // namespace kelvin
