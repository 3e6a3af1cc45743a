#include "kelvin/sources/data_lock.h"

#include <optional>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/sources/new_file.h"

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

}  // namespace kelvin
