#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace kelvin {

// The whole file; every failure is an Error that names the path.  Not of a pipe, at which it might
// wait forever.
std::string read_file(const std::filesystem::path& path);
// The same for what somebody names on a command line, which may be a pipe: `--config <(...)`.
std::string read_file_or_pipe(const std::filesystem::path& path);

// Writes to a temporary neighbour, syncs it and renames it over `path`: a reader
// or a crash sees the old content or the new one, never a part.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// Appends and flushes one line, so that a crash loses at most the line being written.
void append_line(const std::filesystem::path& path, std::string_view line);
// The same without an end of line; the bytes are handed to the system in one piece.
void append_bytes(const std::filesystem::path& path, std::string_view bytes);

// In bytes; 0 if there is no such file.
int64_t file_size_or_zero(const std::filesystem::path& path);

// Cuts off what stands behind the first `size` bytes.  A file that is shorter, or one of which
// there should be something but that is missing, is an Error: something was lost.
void truncate_file(const std::filesystem::path& path, int64_t size);

// After it the content of a file, or the names in a folder, outlive a crash of the machine.
void sync_file(const std::filesystem::path& path);

// An Error unless `path` leads to a file: a pipe or a device among data would never end.
void check_is_file(const std::filesystem::path& path);

// The whole of a file of data, looked at before it is read: at most `most_bytes`.
std::string read_stored_file(const std::filesystem::path& path, int64_t most_bytes);

}  // namespace kelvin
