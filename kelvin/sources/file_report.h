#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kelvin/sources/known_dataset.h"

namespace kelvin {

enum class FileState {
  official,     // size and md5 are the published ones
  unpublished,  // there, and nothing is published about it that could differ
  differs,      // another size or md5 than published, or it cannot be read
  missing,
};

// One file of a layout, as it lies on disk.  Of an idx file that lies there as .gz, size and md5
// are those of what it holds.
struct FileReport {
  std::filesystem::path path;
  int64_t bytes = 0;
  std::string md5 = {};
  FileState state = FileState::missing;
  std::string problem = {};  // what differs, in one line that begins with the path
};

FileReport report_file(const KnownFile& file, StoredFormat format,
                       const std::filesystem::path& data_folder);

// Images and labels first, then the others.
std::vector<KnownFile> all_files(const Layout& layout);

}  // namespace kelvin
