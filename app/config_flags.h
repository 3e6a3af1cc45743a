#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kelvin/runs/config.h"

namespace kelvin {

// The flags that describe one run.  Each stands for a config key; the names are timm's.
class ConfigFlags {
 public:
  void declare(CLI::App& command);

  // Later wins: --config FILE, flags, key=value.  Defaults are the library's.
  Config config() const;

 private:
  std::string file_;
  std::map<std::string, std::string> texts_;  // by config key, those given
  std::vector<std::string> overrides_;
};

}  // namespace kelvin
