#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kelvin {

// How many columns of a terminal a text takes.  Code points: right for every sign that kelvin
// prints (±, †, κ), wrong only for wide scripts.
size_t shown_width(std::string_view text);

// The text in lines of at most `width` columns, broken between words; a word that is longer is
// broken where its parts end (after / , _ = - .), else anywhere.  At least one line; 0 is any
// width.
std::vector<std::string> wrapped_lines(std::string_view text, size_t width);

}  // namespace kelvin
