#include "kelvin/sources/data_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "kelvin/core/check.h"
#include "kelvin/sources/new_file.h"

namespace kelvin {
namespace {

// The file with this name may have been removed, or removed and made anew, by its former holder
// between our opening and our locking it: a lock on a file without a name keeps nobody out.
bool is_still_named(int descriptor, const std::filesystem::path& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(descriptor, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace

DataLock::DataLock(const std::filesystem::path& folder, const std::string& name)
    : path_(folder / (name + ".lock")) {
  constexpr int kTries = 100;  // each lost to another process that came and went
  for (int i = 0; i < kTries; ++i) {
    make_folders(folder);
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (descriptor_ < 0 && errno == ENOENT) continue;
    if (descriptor_ < 0) {
      throw DiskError(path_.string() + ": cannot be made: " + std::strerror(errno));
    }
    const bool is_locked = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
    if (is_locked && is_still_named(descriptor_, path_)) return;
    ::close(descriptor_);
    check(is_locked, path_.string(), ": must be free, another process holds it");
  }
  check(false, path_.string(), ": must be free, other processes are too busy with it");
}

DataLock::~DataLock() {
  ::unlink(path_.c_str());  // while it is locked, see is_still_named
  ::close(descriptor_);
}

}  // namespace kelvin
