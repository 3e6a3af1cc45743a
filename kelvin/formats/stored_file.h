#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace kelvin {

// An Error unless `path` leads to a file: a pipe or a device among data would never end.
void check_is_file(const std::filesystem::path& path);

// The whole of a file of data, looked at before it is read: at most `most_bytes`.
std::string read_stored_file(const std::filesystem::path& path, int64_t most_bytes);

}  // namespace kelvin
