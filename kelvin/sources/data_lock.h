#pragma once

#include <filesystem>
#include <string>

#include "kelvin/core/file_lock.h"

namespace kelvin {

// Held by one process at a time; given back by the destructor, and by the system if the process
// dies.  `folder` is made if it is not there.
class DataLock {
 public:
  // An Error if another process (or another lock of this one) holds it.
  DataLock(const std::filesystem::path& folder, const std::string& name);

 private:
  FileLock lock_;
};

}  // namespace kelvin
