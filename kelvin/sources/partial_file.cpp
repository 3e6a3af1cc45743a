#include "kelvin/sources/partial_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace kelvin {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const std::string& what, int reason) {
  throw DiskError(path.string() + ": " + what + ": " + std::strerror(reason));
}

}  // namespace

NewFile::NewFile(const fs::path& path, int64_t most_bytes)
    : path_(path),
      most_bytes_(most_bytes),
      descriptor_(
          ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) fail(path_, "cannot be made", errno);
}

NewFile::~NewFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void NewFile::write(std::string_view bytes) {
  check(static_cast<int64_t>(bytes.size()) <= most_bytes_ - bytes_, path_.string(),
        ": must have at most ", most_bytes_, " bytes, more are there");
  bytes_ += static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    const auto written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path_, "cannot write", errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void NewFile::close() {
  const bool is_synced = ::fsync(descriptor_) == 0 || errno == EINVAL;
  const int sync_reason = errno;
  const bool is_closed = ::close(descriptor_) == 0;
  const int close_reason = errno;
  descriptor_ = -1;
  if (!is_synced) fail(path_, "cannot write", sync_reason);
  if (!is_closed) fail(path_, "cannot write", close_reason);
}

void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(folder, "cannot be opened", errno);
  const bool is_synced = ::fsync(descriptor) == 0 || errno == EINVAL;
  const int reason = errno;
  ::close(descriptor);
  if (!is_synced) fail(folder, "cannot write", reason);
}

void make_folders(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (!failure && !fs::is_directory(folder))
    failure = std::make_error_code(std::errc::not_a_directory);
  if (failure) fail(folder, "cannot be made", failure.value());
}

namespace {

[[noreturn]] void fail(const std::filesystem::path& path, int reason) {
  throw DiskError(path.string() + ": cannot write: " + std::strerror(reason));
}

}  // namespace

PartialFile::PartialFile(const std::filesystem::path& path)
    : path_(path),
      descriptor_(::open(path.c_str(),
                         O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
                         0644)) {
  if (descriptor_ < 0) fail(path_, errno);
  struct stat status {};
  const bool is_known = ::fstat(descriptor_, &status) == 0;
  if (!is_known || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw DiskError(path_.string() + ": must be a regular file");
  }
  bytes_ = status.st_size;
}

PartialFile::~PartialFile() { ::close(descriptor_); }

void PartialFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path_, errno);
    bytes.remove_prefix(static_cast<size_t>(written));
    bytes_ += written;
  }
}

void PartialFile::clear() {
  if (::ftruncate(descriptor_, 0) != 0) fail(path_, errno);
  bytes_ = 0;
}

void PartialFile::sync() {
  if (::fsync(descriptor_) != 0 && errno != EINVAL) fail(path_, errno);
}

}  // namespace kelvin
