#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace kelvin {

// MD5 sums as 32 lower-case hexadecimal digits.  Datasets are published with them: they tell
// whether bytes arrived whole, not whether somebody forged them.

std::string md5_of(std::string_view bytes);

// Read piece by piece; a file that cannot be read is an Error that names it.
std::string md5_of_file(const std::filesystem::path& path);

}  // namespace kelvin
