#include "app/cli/config_paths.h"

#include <string>
#include <string_view>
#include <vector>

#include "kelvin/core/check.h"
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
  constexpr std::string_view kFolder = "imagefolder:";
  constexpr std::string_view kLists = "imagelist:";
  if (name.starts_with(kFolder)) {
    return std::string(kFolder) + absolute_path(name.substr(kFolder.size()), data_folder);
  }
  if (!name.starts_with(kLists)) return name;
  std::vector<std::string> paths;
  for (const auto& path : split(name.substr(kLists.size()), ',')) {
    paths.push_back(absolute_path(path, data_folder));
  }
  return std::string(kLists) + join(paths, ",");
}

// Configs are UTF-8; a path need not be.
void check_is_text(const std::string& key, const Value& value) {
  try {
    value.dump();
  } catch (const nlohmann::json::type_error&) {
    check(false, key, ": must be UTF-8, the path has other bytes");
  }
}

// A text of the config, if it is there and one.
std::string text_at(const Config& config, const std::string& key) {
  const bool is_text = config.has(key) && config.at(key).is_string();
  return is_text ? config.at(key).get<std::string>() : "";
}

}  // namespace

void make_paths_absolute(Config& config, const fs::path& data_folder) {
  for (const char* key : {"data.name", "data.ood", "data.image_root", "init.pretrained"}) {
    if (config.has(key)) check_is_text(key, config.at(key));
  }
  if (const auto name = text_at(config, "data.name"); !name.empty()) {
    config.set("data.name", absolute_name(name, data_folder));
  }
  for (const char* key : {"data.image_root", "init.pretrained"}) {
    const auto path = text_at(config, key);
    if (!path.empty()) config.set(key, absolute_path(path, data_folder));
  }
  if (!config.has("data.ood") || !config.at("data.ood").is_array()) return;
  auto names = config.at("data.ood");
  for (auto& name : names) {
    if (name.is_string()) name = absolute_name(name.get<std::string>(), data_folder);
  }
  config.set("data.ood", names);
}

}  // namespace kelvin
