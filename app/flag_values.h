#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kelvin {

// Texts given on the command line as what they mean; an Error names the flag.

int64_t whole_number_of(const std::string& flag, const std::string& text);

// Also "nan" and "inf": whether they make sense is for the setting to say.
double number_of(const std::string& flag, const std::string& text);

// "a,b" as two names; an empty name is an Error.
std::vector<std::string> names_of(const std::string& flag, const std::string& text);

}  // namespace kelvin
