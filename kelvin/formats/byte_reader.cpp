#include "kelvin/formats/byte_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace kelvin {

FileParts::FileParts(const std::filesystem::path& path) : where_(path.string()) {
  file_ = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);  // not to wait at a pipe
  check(file_ >= 0, where_, ": cannot read: ", std::strerror(errno));
  struct stat found {};
  const bool is_known = ::fstat(file_, &found) == 0;
  const bool is_file = is_known && S_ISREG(found.st_mode);
  if (!is_file) {
    ::close(file_);
    check(!is_known || !S_ISDIR(found.st_mode), where_, ": is a folder, must be a file");
    check(false, where_, ": must be a file, is a device or a pipe");
  }
  size_ = static_cast<uint64_t>(found.st_size);
}

FileParts::~FileParts() { ::close(file_); }

std::string_view FileParts::part(uint64_t offset, uint64_t length) {
  return kept_.emplace_back(read(offset, length));
}

std::string_view FileParts::few(uint64_t offset, size_t length) {
  constexpr uint64_t kWindow = 1 << 16;
  const bool is_there =
      offset >= window_at_ && offset + length <= window_at_ + window_.size() && !window_.empty();
  if (!is_there) {
    window_at_ = offset / kWindow * kWindow;
    window_ = read(window_at_, std::min(size_ - window_at_, kWindow + length));
  }
  return std::string_view(window_).substr(offset - window_at_, length);
}

std::string FileParts::read(uint64_t offset, uint64_t length) const {
  std::string bytes(length, '\0');
  uint64_t done = 0;
  while (done < length) {
    const auto count =
        ::pread(file_, bytes.data() + done, length - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    check(count >= 0, where_, ": cannot read: ", std::strerror(errno));
    check(count > 0, where_, ": cannot read to its end, which is at ", offset + done,
          " now: is somebody writing it?");
    done += static_cast<uint64_t>(count);
  }
  return bytes;
}

}  // namespace kelvin
