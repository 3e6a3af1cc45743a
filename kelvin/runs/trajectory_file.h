#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "kelvin/core/reading.h"

namespace kelvin {

// What was measured at one moment of training: a line of a run folder's `trajectory.jsonl`.
struct TrajectoryLine {
  int64_t step = 0;  // 0: the initialisation
  double epoch = 0;
  std::vector<double> logits_singular_values = {};  // largest first
  Readings readings = {};                           // without definitions, each by its default one
};

// In the order of the file; none if the folder has no such file, and not the last line if a crash
// cut it short.
std::vector<TrajectoryLine> load_trajectory(const std::filesystem::path& folder);
// The same of the file's first `size` bytes, all of which must be whole lines.
std::vector<TrajectoryLine> load_trajectory(const std::filesystem::path& folder, int64_t size);

}  // namespace kelvin
