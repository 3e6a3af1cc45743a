#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>

#include "app/cli/progress_bar.h"

namespace kelvin {

// How far the runs of a recipe are, as their folders below `root` tell.
class RecipeProgress {
 public:
  explicit RecipeProgress(std::filesystem::path root) : root_(std::move(root)) {}

  void add(const std::string& name) { runs_[name] = {}; }
  void end(const std::string& name);

  // Reads the folders at most twice a second.
  Activity look(const std::string& label);

 private:
  using Clock = std::chrono::steady_clock;

  struct State {
    bool has_ended = false;
    double epochs_done = 0;
    double epochs = 0;  // 0: not known yet
  };

  void update(const std::string& name, State& run) const;

  std::filesystem::path root_;
  std::map<std::string, State> runs_;
  Clock::time_point started_ = Clock::now();
  Clock::time_point looked_ = {};
};

}  // namespace kelvin
