#include "kelvin/sources/replace_folder.h"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>
#include <cstring>

#include "kelvin/sources/new_file.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

bool rename_to(const fs::path& from, const fs::path& to) {
  return ::rename(from.c_str(), to.c_str()) == 0;
}

void require(bool ok, const fs::path& target) {
  if (!ok) throw DiskError(target.string() + ": cannot be replaced: " + std::strerror(errno));
}

}  // namespace

void replace_folder_in_two_steps(const fs::path& fresh, const fs::path& target,
                                 const fs::path& old) {
  const bool is_there = fs::exists(fs::symlink_status(target));
  if (is_there) require(rename_to(target, old), target);
  if (rename_to(fresh, target)) return;
  const int reason = errno;
  if (is_there) rename_to(old, target);
  errno = reason;
  require(false, target);
}

void replace_folder(const fs::path& fresh, const fs::path& target, const fs::path& old) {
  if (!fs::exists(fs::symlink_status(target))) {
    require(rename_to(fresh, target), target);
  } else if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    require(rename_to(fresh, old), target);
  } else {
    replace_folder_in_two_steps(fresh, target, old);
  }
  sync_folder(target.parent_path());
}

}  // namespace kelvin
