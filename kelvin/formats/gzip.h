#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace kelvin {

// Whether these are the first bytes of a gzip file.
bool is_gzip(std::string_view bytes);

// What a gzip of one or several members holds.  More than `most_bytes` is an Error, raised before
// more memory is used.  `where` names the file in messages.
std::string gunzipped(std::string_view packed, const std::string& where, int64_t most_bytes);

// What a stream of zlib (RFC 1950) holds, under the same conditions.
std::string inflated(std::string_view packed, const std::string& where, int64_t most_bytes);

// The content of a file, unpacked if it is a gzip; no more than `most_bytes`.
std::string read_file_or_gzip(const std::filesystem::path& path, int64_t most_bytes);

}  // namespace kelvin
