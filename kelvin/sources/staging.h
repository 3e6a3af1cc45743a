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

// A fresh folder in which a dataset is put together, removed with all it holds at the end.  What
// processes that died left under the same name is removed at the beginning, so only one at a time
// may use a name.
class StagingFolder {
 public:
  StagingFolder(const std::filesystem::path& parent, const std::string& name);
  ~StagingFolder();
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Moves the folder `fresh` to `target`.  A folder that is there already ends up at `old`, for the
// caller to delete.  All three lie in one file system; `old` must not exist.  At every moment the
// target is the old folder or the fresh one; only where the file system cannot exchange two names
// there is a moment without either.  A failure is a DiskError and leaves the target as it was.
void replace_folder(const std::filesystem::path& fresh, const std::filesystem::path& target,
                    const std::filesystem::path& old);

// The same for any file system: two renames, the first of which is undone if the second fails.
void replace_folder_in_two_steps(const std::filesystem::path& fresh,
                                 const std::filesystem::path& target,
                                 const std::filesystem::path& old);

}  // namespace kelvin
