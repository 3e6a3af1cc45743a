#include "kelvin/sources/staging_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "kelvin/sources/new_file.h"

namespace kelvin {
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

}  // namespace kelvin
