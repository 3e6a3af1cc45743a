#pragma once

#include <string>
#include <string_view>

namespace kelvin {

// A stranger's text, fit for a message of one line: printable ASCII, other bytes as '?', and not
// more than some 80 of them.
std::string shown_text(std::string_view text);

// Whether the bytes are text in UTF-8: no overlong forms, no surrogates, nothing beyond U+10FFFF.
bool is_utf8(std::string_view bytes);

}  // namespace kelvin
