#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kelvin/core/file_lock.h"
#include "kelvin/core/reading.h"
#include "kelvin/runs/config.h"
#include "kelvin/runs/readings_file.h"
#include "kelvin/runs/scores_file.h"

namespace kelvin {

// RUN/lock: whoever writes a run holds it, so that no two processes write one run.  Given back by
// the destructor, and by the system if the process dies: a run that says "running" and is not
// locked was killed.
class RunLock {
 public:
  // Nothing if somebody is at work in the run; an Error if the folder cannot be written.
  static std::optional<RunLock> try_take(const std::filesystem::path& run);
  // An Error that names the process if somebody is at work in the run.
  static RunLock take(const std::filesystem::path& run);

 private:
  explicit RunLock(FileLock lock) : lock_(std::move(lock)) {}

  FileLock lock_;
};

// Asks without disturbing.
bool is_locked(const std::filesystem::path& run);

enum class RunStatus { running, finished, stopped, failed };

std::string name_of(RunStatus status);

// A setting of a run that went on with another value than it had before.
struct ChangedSetting {
  std::string key;
  nlohmann::ordered_json from;
  nlohmann::ordered_json to;
};

// Who goes on with a run, from which step, and with which other settings.
struct Resumption {
  nlohmann::ordered_json metadata = {};
  int64_t step = 0;
  std::vector<ChangedSetting> changes = {};
};

// Writes the folder of one run.  Whatever moment it is interrupted at, the folder stays readable.
class RunFolder {
 public:
  // Makes the folder and writes config and metadata; refuses one that already holds a run.
  static RunFolder create(const std::filesystem::path& path, const Config& config,
                          const nlohmann::ordered_json& metadata);
  // For adding readings to a run that exists.
  static RunFolder open(const std::filesystem::path& path);

  // One flat object: what was observed at a step.
  void append_metrics(const nlohmann::ordered_json& line) const;
  // Adds it to the metadata's list "resumed"; what changed also to "config".
  void add_resumption(const Resumption& resumption) const;
  void add_readings(const Readings& readings) const;
  // With their definitions and scores.
  void remove_readings() const;
  void write_scores(const Scores& scores) const;
  void set_status(RunStatus status) const;

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// Throws, before anything is written, if RunFolder::create would have to refuse `path`.
void check_can_create_run(const std::filesystem::path& path);

// A run as read from disk.
struct Run {
  std::filesystem::path path;
  Config config;
  nlohmann::ordered_json metadata;
  std::vector<nlohmann::ordered_json> metrics;
  std::vector<TrajectoryLine> trajectory = {};
  Readings readings;
  std::vector<Scores> scores;
  RunStatus status = RunStatus::running;
};

// The objects of a file of JSON lines; none if it is not there, and not the last line if a crash
// cut it short.
std::vector<nlohmann::ordered_json> load_lines(const std::filesystem::path& path);
// The same of the file's first `size` bytes, all of which must be whole lines.
std::vector<nlohmann::ordered_json> load_lines(const std::filesystem::path& path, int64_t size);

bool is_run(const std::filesystem::path& path);

Run load_run(const std::filesystem::path& path);
// The status alone; running if the run has not written it yet.
RunStatus load_status(const std::filesystem::path& run);

// The resolved config as metadata.json holds it under "config", so that a run that goes on can tell
// whether somebody edited config.toml: values by full names.
nlohmann::ordered_json config_record(const Config& resolved);

// What config.toml, resolved, says differently than the metadata; nothing of a run that was made
// before they held the config.
std::vector<ChangedSetting> changed_settings(const Run& run, const Config& resolved);

// Every setting that was changed when the run went on (kelvin resume --inexact), oldest first.
std::vector<ChangedSetting> changes_of(const Run& run);

// `root` itself if it is a run, else every run below it, by name.  Folders that cannot be looked
// into, and links that lead to themselves, are left out and told to `warn`: the first ones one by
// one, then how many more.
std::vector<std::filesystem::path> find_runs(
    const std::filesystem::path& root,
    const std::function<void(const std::string&)>& warn = [](const std::string&) {});

}  // namespace kelvin
