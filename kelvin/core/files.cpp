#include "kelvin/core/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <vector>

#include "kelvin/core/check.h"

namespace kelvin {
namespace {

std::string reason() { return std::strerror(errno); }

void write_all(int file, std::string_view content, const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const auto why = reason();
      ::close(file);
      check(false, path.string(), ": cannot write: ", why);
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  std::error_code ignored;
  check(!std::filesystem::is_directory(path, ignored), path.string(),
        ": is a folder, must be a file");
  std::ifstream file(path, std::ios::binary);
  check(file.is_open(), path.string(), ": cannot read: ", reason());
  std::string content;
  // A string that grows step by step would touch twice the memory.
  constexpr uintmax_t kMostReserved = uintmax_t{1} << 30;
  const auto size = std::filesystem::file_size(path, ignored);
  if (!ignored) content.reserve(std::min(size, kMostReserved));
  std::vector<char> piece(size_t{1} << 16);
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    content.append(piece.data(), static_cast<size_t>(file.gcount()));
  }
  check(!file.bad(), path.string(), ": cannot read to its end");
  return content;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  auto part = path;
  part += ".part";
  const int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  check(file >= 0, path.string(), ": cannot write: ", reason());
  try {
    write_all(file, content, path);
    // Without the sync a crash of the machine may leave the new name with no content.
    const bool synced = ::fsync(file) == 0 || errno == EINVAL;
    const auto why = reason();
    const bool is_closed = ::close(file) == 0;
    check(is_closed && synced, path.string(), ": cannot write: ", synced ? reason() : why);
    const bool is_renamed = ::rename(part.c_str(), path.c_str()) == 0;
    check(is_renamed, path.string(), ": cannot write: ", reason());
  } catch (...) {
    ::unlink(part.c_str());
    throw;
  }
}

void append_line(const std::filesystem::path& path, std::string_view line) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  check(file >= 0, path.string(), ": cannot write: ", reason());
  std::string whole(line);
  whole += '\n';
  write_all(file, whole, path);
  const bool is_closed = ::close(file) == 0;
  check(is_closed, path.string(), ": cannot write: ", reason());
}

}  // namespace kelvin
