#include "kelvin/core/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <system_error>
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
  check(!std::filesystem::is_other(path, ignored), path.string(),
        ": must be a file, is a device or a pipe");
  return read_file_or_pipe(path);
}

std::string read_file_or_pipe(const std::filesystem::path& path) {
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
  append_bytes(path, std::string(line) + '\n');
}

void append_bytes(const std::filesystem::path& path, std::string_view bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  check(file >= 0, path.string(), ": cannot write: ", reason());
  write_all(file, bytes, path);
  const bool is_closed = ::close(file) == 0;
  check(is_closed, path.string(), ": cannot write: ", reason());
}

int64_t file_size_or_zero(const std::filesystem::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) == 0) {
    check(!S_ISDIR(found.st_mode), path.string(), ": is a folder, must be a file");
    return found.st_size;
  }
  check(errno == ENOENT, path.string(), ": cannot read: ", reason());
  return 0;
}

void truncate_file(const std::filesystem::path& path, int64_t size) {
  check(size >= 0, path.string(), ": cannot be cut to ", size, " bytes, must be 0 or more");
  const auto there = file_size_or_zero(path);
  check(there >= size, path.string(), ": must have at least ", size, " bytes, has ", there);
  if (there == size) return;
  const bool is_cut = ::truncate(path.c_str(), size) == 0;
  check(is_cut, path.string(), ": cannot write: ", reason());
}

void sync_file(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  check(file >= 0, path.string(), ": cannot read: ", reason());
  // Not every kind of file can be synced; those that cannot have nothing to lose.
  const bool is_synced = ::fsync(file) == 0 || errno == EINVAL;
  const auto why = reason();
  ::close(file);
  check(is_synced, path.string(), ": cannot write: ", why);
}

namespace fs = std::filesystem;

void check_is_file(const fs::path& path) {
  std::error_code failure;
  const auto status = fs::status(path, failure);
  check(fs::exists(status), path.string(),
        ": cannot read: ", failure ? failure.message() : "No such file or directory");
  check(!fs::is_directory(status), path.string(), ": is a folder, must be a file");
  check(fs::is_regular_file(status), path.string(), ": must be a file, is a device or a pipe");
}

std::string read_stored_file(const fs::path& path, int64_t most_bytes) {
  check_is_file(path);
  std::error_code failure;
  const auto size = fs::file_size(path, failure);
  check(!failure, path.string(), ": cannot read: ", failure.message());
  check(size <= static_cast<uint64_t>(most_bytes), path.string(), ": must have at most ",
        most_bytes, " bytes, has ", size);
  return read_file(path);
}

}  // namespace kelvin
