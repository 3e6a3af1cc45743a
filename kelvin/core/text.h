#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kelvin {

std::string join(const std::vector<std::string>& parts, std::string_view separator);

std::vector<std::string> split(std::string_view text, char separator);

// Whether `a` comes before `b` for people: numbers in them count as numbers, layer2 before layer10.
bool comes_before(std::string_view a, std::string_view b);

// The candidate with the smallest edit distance to `name`; empty when none is
// closer than half of the name, because a far-fetched guess helps nobody.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

// "[2, 3]".
std::string shape_text(const std::vector<int64_t>& shape);

// A number for people: at most `digits` significant digits, no trailing zeros.
std::string short_number(double value, int digits = 4);

// "T" of a duration for people: 48 s, 2 min 05 s, 1 h 02 min; a dash for NaN and infinity.
std::string short_duration(double seconds);

// An amount of memory for people, in units of 1024: 512 B, 3.5 MiB, 12 GiB.
std::string byte_text(int64_t bytes);

// Its inverse, as people write it: "4GiB", "512 MiB", "2G" (also GiB), "1000".  An Error that opens
// with `where` if it is no such amount, or none above 0.
int64_t bytes_of(const std::string& text, const std::string& where);

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
