#pragma once

#include <filesystem>
#include <string>

namespace kelvin {

// A run as tables of all runs below `root` call it; its whole path if it is the root itself.
inline std::string name_below(const std::filesystem::path& root, const std::filesystem::path& run) {
  const auto name = run.lexically_relative(root);
  return name.empty() || name == "." ? run.string() : name.string();
}

}  // namespace kelvin
