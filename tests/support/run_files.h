#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "kelvin/core/files.h"

namespace kelvin {

// A checkpoint as training leaves it before an epoch is over: weights of 1000 bytes, the state of
// training of 2000 and 20.
inline void write_fake_checkpoint(const std::filesystem::path& run, const std::string& name) {
  const auto folder = run / "checkpoints" / name;
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "model.safetensors", std::string(1000, 'w'));
  write_file_atomically(folder / "training.safetensors", std::string(2000, 't'));
  write_file_atomically(folder / "training.json", R"({"best_accuracy":-1})");
}

// checkpoints/NAME leads to TARGET.
inline void link_fake_checkpoint(const std::filesystem::path& run, const std::string& name,
                                 const std::string& target) {
  std::filesystem::remove(run / "checkpoints" / name);
  std::filesystem::create_directory_symlink(target, run / "checkpoints" / name);
}

// Every file, folder and link below, by its path from `folder`; links are not followed.
inline std::set<std::string> paths_below(const std::filesystem::path& folder) {
  std::set<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    paths.insert(entry.path().lexically_relative(folder).string());
  }
  return paths;
}

}  // namespace kelvin
