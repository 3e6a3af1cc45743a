#include "kelvin/sources/staging.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "kelvin/core/check.h"
#include "kelvin/sources/partial_file.h"

namespace kelvin {
namespace {

FileLock taken_lock(const std::filesystem::path& path) {
  std::optional<FileLock> lock;
  try {
    lock = FileLock::try_take(path, FileLock::Folder::is_made);
  } catch (const Error& error) {
    throw DiskError(error.what());
  }
  check(lock.has_value(), path.string(), ": must be free, another process holds it");
  return std::move(*lock);
}

}  // namespace

DataLock::DataLock(const std::filesystem::path& folder, const std::string& name)
    : lock_(taken_lock(folder / (name + ".lock"))) {}

namespace {

namespace fs = std::filesystem;

constexpr auto kPattern = "XXXXXX";

void remove_leftovers(const fs::path& parent, const std::string& prefix) {
  std::vector<fs::path> leftovers;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    const auto name = entry.path().filename().string();
    const bool is_ours =
        name.starts_with(prefix) && name.size() == prefix.size() + std::string(kPattern).size();
    if (is_ours) leftovers.push_back(entry.path());
  }
  for (const auto& leftover : leftovers) fs::remove_all(leftover, ignored);
}

}  // namespace

StagingFolder::StagingFolder(const fs::path& parent, const std::string& name) {
  const auto prefix = "unpack-" + name + "-";
  remove_leftovers(parent, prefix);
  auto pattern = (parent / (prefix + kPattern)).string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw DiskError(pattern + ": cannot be made: " + std::strerror(errno));
  }
  path_ = pattern;
}

StagingFolder::~StagingFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

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
