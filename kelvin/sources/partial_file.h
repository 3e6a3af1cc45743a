#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace kelvin {

// A file that grows while a download brings it, and may have begun in an earlier process.  Links
// are not followed; every failure is a DiskError.
class PartialFile {
 public:
  explicit PartialFile(const std::filesystem::path& path);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  void append(std::string_view bytes);
  void clear();
  void sync();

  int64_t bytes() const { return bytes_; }

 private:
  std::filesystem::path path_;
  int descriptor_;
  int64_t bytes_ = 0;
};

}  // namespace kelvin
