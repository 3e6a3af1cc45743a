#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kelvin {

// The whole file; every failure is an Error that names the path.
std::string read_file(const std::filesystem::path& path);

// Writes to a temporary neighbour, syncs it and renames it over `path`: a reader
// or a crash sees the old content or the new one, never a part.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// Appends and flushes one line, so that a crash loses at most the line being written.
void append_line(const std::filesystem::path& path, std::string_view line);

}  // namespace kelvin
