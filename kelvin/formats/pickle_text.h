#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kelvin {

// How protocol 0 of Python's pickles writes strings into lines.  Nothing if the text is malformed.

// A Python literal in quotes: what STRING holds.
std::optional<std::string> unquoted(std::string_view literal);

// Python's raw-unicode-escape, given as UTF-8: what UNICODE holds.
std::optional<std::string> unescaped_unicode(std::string_view text);

// Python's text.encode("latin1") of UTF-8: how bytes were written before there was an opcode.
std::optional<std::string> latin1_of(std::string_view utf8);

}  // namespace kelvin
