#include "kelvin/sources/partial_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "kelvin/sources/new_file.h"

namespace kelvin {
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
