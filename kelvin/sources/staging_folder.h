#pragma once

#include <filesystem>
#include <string>

namespace kelvin {

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

}  // namespace kelvin
