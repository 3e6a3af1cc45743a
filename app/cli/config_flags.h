#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kelvin/runs/config.h"

namespace kelvin {

// The verbs that take settings of a run; a flag may be for several of them.
using ConfigUse = unsigned;
constexpr ConfigUse kForTrain = 1;
constexpr ConfigUse kForMeasure = 2;
constexpr ConfigUse kForOod = 4;
constexpr ConfigUse kForProbe = 8;
constexpr ConfigUse kForTruncate = 16;
constexpr ConfigUse kForCalibrate = 32;

// The flags that describe one run.  Each stands for a config key; the names are timm's.
class ConfigFlags {
 public:
  // The help shows the flags that are for `use`.  Of verbs that look at a trained network those
  // whose keys begin with one of `changeable` come first: the others are for files of weights.
  void declare(CLI::App& command, ConfigUse use, const std::vector<std::string>& changeable = {});

  // Later wins: --config FILE, flags, key=value.  Defaults are the library's.  A flag that is for
  // training alone is an Error elsewhere.
  Config config() const;

 private:
  ConfigUse use_ = kForTrain;
  std::string file_;
  std::map<std::string, std::string> texts_;  // by config key, those given
  std::vector<std::string> overrides_;
};

}  // namespace kelvin
