#pragma once

#include <filesystem>
#include <optional>
#include <utility>

#include "kelvin/core/file_lock.h"

namespace kelvin {

// RUN/lock: whoever writes a run holds it, so that no two processes write one run.  Given back by
// the destructor, and by the system if the process dies: a run that says "running" and is not
// locked was killed.
class RunLock {
 public:
  // Nothing if somebody is at work in the run; an Error if the folder cannot be written.
  static std::optional<RunLock> try_take(const std::filesystem::path& run);
  // An Error that names the process if somebody is at work in the run.
  static RunLock take(const std::filesystem::path& run);

 private:
  explicit RunLock(FileLock lock) : lock_(std::move(lock)) {}

  FileLock lock_;
};

// Asks without disturbing.
bool is_locked(const std::filesystem::path& run);

}  // namespace kelvin
