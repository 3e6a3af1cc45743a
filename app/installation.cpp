#include "app/installation.h"

#include "kelvin/core/check.h"

namespace kelvin {

namespace fs = std::filesystem;

fs::path executable_path() {
  std::error_code failure;
  auto path = fs::read_symlink("/proc/self/exe", failure);
  check(!failure, "/proc/self/exe: cannot read: ", failure.message());
  return path;
}

fs::path installed_file(const std::string& name, const std::vector<std::string>& places) {
  const auto folder = executable_path().parent_path();
  for (const auto& place : places) {
    auto path = (folder / place / name).lexically_normal();
    if (fs::is_regular_file(path)) return path;
  }
  check(false, name, ": not found beside ", folder.string(),
        "; build it with 'make build' or install kelvin again");
  return {};
}

}  // namespace kelvin
