#include "app/cli/network_input.h"

#include <algorithm>

#include "app/cli/config_paths.h"
#include "app/cli/setting_words.h"
#include "kelvin/core/check.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {

namespace fs = std::filesystem;

void NetworkInput::declare(CLI::App& command) {
  declare(command, "a run folder; or a file of weights, for which the flags tell model and data",
          "RUN or WEIGHTS");
}

void NetworkInput::declare(CLI::App& command, const std::string& what,
                           const std::string& type_name) {
  declare_optional(command, what, type_name);
  command.get_option("INPUT")->required();
}

void NetworkInput::declare_optional(CLI::App& command, const std::string& what,
                                    const std::string& type_name) {
  declare_input(command, "INPUT", path_, what)->type_name(type_name);
  flags_.declare(command, use_, changeable_);
}

void NetworkInput::check_exists() const {
  check(fs::exists(path_), path_, ": no such run or file");
  check(!is_run() || kelvin::is_run(path_), path_, ": is not a run folder (no config.toml)");
}

Config NetworkInput::config(const fs::path& data_folder) const {
  auto config = flags_.config();
  if (!is_weights()) {
    for (const auto& [key, value] : config.values()) {
      const bool is_changeable =
          std::any_of(changeable_.begin(), changeable_.end(),
                      [&key = key](const auto& prefix) { return key.starts_with(prefix); });
      check(is_changeable, key, ": is for a file of weights; ", path_, " knows its own settings");
    }
    return config;
  }
  for (const char* key : {"model.name", "data.name"}) {
    check(config.has(key), path_, ": needs ", key, " to be measured (",
          key == std::string("model.name") ? "--model" : "--dataset", ")");
  }
  check(!config.has("init.pretrained"), "init.pretrained: is ", path_, " already");
  config.set("init.pretrained", path_);
  make_paths_absolute(config, data_folder);
  return config;
}

}  // namespace kelvin
