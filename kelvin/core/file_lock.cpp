#include "kelvin/core/file_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

// On the whole file.  It belongs to the open file, not to the process: two objects of one process
// keep each other out, and closing another descriptor of the file does not give it back.
struct flock whole_file_lock() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

bool lock_file(int descriptor) {
  auto lock = whole_file_lock();
  return ::fcntl(descriptor, F_OFD_SETLK, &lock) == 0;
}

// The file with this name may have been removed, or removed and made anew, by its former holder
// between our opening and our locking it: a lock on a file without a name keeps nobody out.
bool is_still_named(int descriptor, const fs::path& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(descriptor, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

// Only for the message that others get; a lock without it is as good.
void write_holder(int descriptor) {
  const auto text = std::to_string(::getpid()) + "\n";
  if (::ftruncate(descriptor, 0) != 0) return;
  if (::write(descriptor, text.data(), text.size()) < 0) return;
}

void make_folder_of(const fs::path& path) {
  std::error_code failure;
  const auto folder = path.parent_path();
  fs::create_directories(folder, failure);
  if (!failure && !fs::is_directory(folder)) {
    failure = std::make_error_code(std::errc::not_a_directory);
  }
  check(!failure, folder.string(), ": cannot be made: ", failure.message());
}

}  // namespace

std::optional<FileLock> FileLock::try_take(const fs::path& path, Folder folder) {
  constexpr int kTries = 100;  // each lost to another process that came and went
  for (int i = 0; i < kTries; ++i) {
    if (folder == Folder::is_made) make_folder_of(path);
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    const bool has_lost_folder = descriptor < 0 && errno == ENOENT && folder == Folder::is_made;
    if (has_lost_folder) continue;
    check(descriptor >= 0, path.string(), ": cannot be made: ", std::strerror(errno));
    const bool is_taken = lock_file(descriptor);
    const int reason = errno;
    if (is_taken && is_still_named(descriptor, path)) {
      write_holder(descriptor);
      return FileLock(path, descriptor);
    }
    ::close(descriptor);
    const bool is_held = !is_taken && (reason == EAGAIN || reason == EACCES);
    if (is_held) return std::nullopt;
    check(is_taken, path.string(), ": cannot be locked: ", std::strerror(reason));
  }
  return std::nullopt;
}

FileLock::FileLock(fs::path path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

FileLock::FileLock(FileLock&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  path_ = std::move(other.path_);
  descriptor_ = std::exchange(other.descriptor_, -1);
  return *this;
}

FileLock::~FileLock() { give_back(); }

void FileLock::give_back() {
  if (descriptor_ < 0) return;
  // While it is locked, see is_still_named; a file that took its place is not ours to remove.
  if (is_still_named(descriptor_, path_)) ::unlink(path_.c_str());
  ::close(descriptor_);
  descriptor_ = -1;
}

bool is_file_locked(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0 && (errno == ENOENT || errno == ENOTDIR)) return false;
  check(descriptor >= 0, path.string(), ": cannot read: ", std::strerror(errno));
  auto lock = whole_file_lock();
  const bool is_answered = ::fcntl(descriptor, F_OFD_GETLK, &lock) == 0;
  const int reason = errno;
  ::close(descriptor);
  check(is_answered, path.string(), ": cannot be asked for its lock: ", std::strerror(reason));
  return lock.l_type != F_UNLCK;
}

std::string holder_of_lock(const fs::path& path) {
  try {
    const auto text = read_file(path);
    const auto end = text.find('\n');
    return end == std::string::npos ? "" : text.substr(0, end);
  } catch (const Error&) {  // its holder is gone, and the file with it
    return "";
  }
}

}  // namespace kelvin
