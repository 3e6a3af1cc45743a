#include "app/dataset_paths.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "kelvin/core/text.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

// A path that exists nowhere stays as it is: the message then shows what was given.
std::string absolute_path(const std::string& path, const fs::path& data_folder) {
  if (path.empty()) return path;
  if (fs::exists(path)) return fs::absolute(path).lexically_normal().string();
  const auto below = data_folder / path;
  return fs::exists(below) ? fs::absolute(below).lexically_normal().string() : path;
}

std::string absolute_name(const std::string& name, const fs::path& data_folder) {
  constexpr std::array<std::string_view, 2> kPrefixes = {"imagefolder:", "imagelist:"};
  for (const auto prefix : kPrefixes) {
    if (!name.starts_with(prefix)) continue;
    std::vector<std::string> paths;
    for (const auto& path : split(name.substr(prefix.size()), ',')) {
      paths.push_back(absolute_path(path, data_folder));
    }
    return std::string(prefix) + join(paths, ",");
  }
  return name;
}

}  // namespace

void make_dataset_paths_absolute(Config& config, const fs::path& data_folder) {
  if (config.has("data.name") && config.at("data.name").is_string()) {
    config.set("data.name", absolute_name(config.at("data.name").get<std::string>(), data_folder));
  }
  if (!config.has("data.ood") || !config.at("data.ood").is_array()) return;
  auto names = config.at("data.ood");
  for (auto& name : names) {
    if (name.is_string()) name = absolute_name(name.get<std::string>(), data_folder);
  }
  config.set("data.ood", names);
}

}  // namespace kelvin
