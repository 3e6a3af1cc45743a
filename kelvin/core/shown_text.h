#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kelvin {

// A stranger's text, fit for a message of one line: printable ASCII, other bytes as '?', and not
// more than some 80 of them.
std::string shown_text(std::string_view text);

constexpr size_t kMostShownBytes = 2000;

// A whole line that may quote strangers (a message, a cell of a table), fit for a terminal: UTF-8
// without anything that steers one.  Line breaks and tabs become spaces; other control characters,
// marks that change the direction of writing, and bytes that are no UTF-8 become '?'.  What is
// longer than `most_bytes` ends in "...".
std::string shown_line(std::string_view text, size_t most_bytes = kMostShownBytes);

// Whether the bytes are text in UTF-8: no overlong forms, no surrogates, nothing beyond U+10FFFF.
bool is_utf8(std::string_view bytes);

}  // namespace kelvin
