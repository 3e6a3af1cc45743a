#pragma once

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

// A number for people: at most `digits` significant digits, no trailing zeros.
std::string short_number(double value, int digits = 4);

// "T" of a duration for people: 48 s, 2 min 05 s, 1 h 02 min; a dash for NaN and infinity.
std::string short_duration(double seconds);

}  // namespace kelvin
