#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kelvin {

struct PruneOptions {
  bool dry_run = false;  // find what would go, and leave it
  // Also what a finished run's checkpoints hold beside the weights: it cannot be resumed any more.
  bool training_state = false;
};

struct PrunedEntry {
  std::filesystem::path path;
  int64_t bytes = 0;  // with all that it holds, if it is a folder
};

struct PrunedRun {
  std::vector<PrunedEntry> removed = {};
  // Why something, or everything, was left alone; empty if nothing was.
  std::string note = {};

  int64_t bytes() const;
};

// Removes from a run what its results do not need: checkpoints that neither checkpoints/last nor
// checkpoints/best points to, parts of files whose writing was interrupted, dumped features.
// A run that somebody is at work in is left alone; so are the checkpoints of one whose `last` or
// `best` does not lead to weights among them, or whose `best` was lost.  Links are neither followed
// nor, but for unfinished ones, removed.
PrunedRun prune_run(const std::filesystem::path& run, const PruneOptions& options = {});

}  // namespace kelvin
