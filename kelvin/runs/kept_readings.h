#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "kelvin/runs/run_folder.h"

namespace kelvin {

// What is worth keeping of a finished run when its folder is gone: a file of some 50 kB for a
// repository, so that nobody has to train it again.  Resolved config, every reading with its
// definition, metrics and trajectory thinned to what figures draw, command, commit, machine.  Not
// kept: weights, scores, curves.npz, curves of layers, tails of spectra.

// The name of a config: equal for configs whose runs have the same results but for rounding.  Left
// out are settings of measures and detectors that are not used, and what only decides what is
// written to disk and when.
std::string config_hash(const Config& resolved);

// The text of the file; `command` is how the run can be made again.  Same run, same bytes.  Of a
// run that failed, which is a result where a setting is chosen, it holds the metadata's "failure".
std::string kept_text(const Run& ended, const std::string& command);

// Writes FOLDER/HASH.json, where HASH is that of the run's config, and returns its path.
std::filesystem::path keep_readings(const std::filesystem::path& folder, const Run& ended,
                                    const std::string& command);

// A kept file as a run that has ended, whose path is that of the file.
Run load_kept(const std::filesystem::path& file);

// A folder of kept files, by config.
class KeptReadings {
 public:
  // A folder that is not there holds none.
  explicit KeptReadings(std::filesystem::path folder);

  // `resolve` fills in settings that were not there when an old file was written; what this
  // version cannot resolve any more is left out.
  void set_resolver(std::function<Config(const Config&)> resolve) { resolve_ = std::move(resolve); }

  // The file of a resolved config; nothing if there is none.
  std::optional<std::filesystem::path> find(const Config& resolved) const;

 private:
  std::filesystem::path folder_;
  std::function<Config(const Config&)> resolve_ = {};
  mutable std::optional<std::map<std::string, std::filesystem::path>> resolved_ = {};
};

}  // namespace kelvin
