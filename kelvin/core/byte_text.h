#pragma once

#include <cstdint>
#include <string>

namespace kelvin {

// An amount of memory for people, in units of 1024: 512 B, 3.5 MiB, 12 GiB.
std::string byte_text(int64_t bytes);

// Its inverse, as people write it: "4GiB", "512 MiB", "2G" (also GiB), "1000".  An Error that opens
// with `where` if it is no such amount, or none above 0.
int64_t bytes_of(const std::string& text, const std::string& where);

}  // namespace kelvin
