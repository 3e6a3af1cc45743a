#include "kelvin/runs/run_folder.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <sstream>
#include <string>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/json_fields.h"
#include "kelvin/core/text.h"
#include "kelvin/formats/toml_text.h"
#include "kelvin/runs/readings_file.h"

namespace kelvin {
namespace {

std::filesystem::path lock_of(const std::filesystem::path& run) { return run / "lock"; }

}  // namespace

std::optional<RunLock> RunLock::try_take(const std::filesystem::path& run) {
  auto lock = FileLock::try_take(lock_of(run));
  if (!lock) return std::nullopt;
  return RunLock(std::move(*lock));
}

RunLock RunLock::take(const std::filesystem::path& run) {
  auto lock = try_take(run);
  const auto holder = lock ? "" : holder_of_lock(lock_of(run));
  check(lock.has_value(), run.string(), ": another process ",
        holder.empty() ? "" : "(" + holder + ") ", "is at work in it");
  return std::move(*lock);
}

bool is_locked(const std::filesystem::path& run) { return is_file_locked(lock_of(run)); }

namespace {

// Paths on a command line need not be UTF-8, of which JSON is made: bytes that are none become
// U+FFFD.
std::string text_of(const nlohmann::ordered_json& json, int indent = -1) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::array kStatuses = {RunStatus::running, RunStatus::finished, RunStatus::stopped,
                                  RunStatus::failed};

constexpr auto kConfig = "config";
constexpr auto kResumed = "resumed";
constexpr auto kChanged = "changed";

// What JSON can hold of a setting: NaN and infinity as TOML writes them.
Json json_of(const Value& value) {
  if (value.is_array()) {
    auto list = Json::array();
    for (const auto& element : value) list.push_back(json_of(element));
    return list;
  }
  const bool is_finite = !value.is_number_float() || std::isfinite(value.get<double>());
  return is_finite ? Json(value) : Json(toml_text_of(value));
}

std::vector<Json> lines_of(const std::string& text, const fs::path& path) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(
        parse_json_object(line, path.string() + ": line " + std::to_string(lines.size() + 1)));
  }
  return lines;
}

// Links to folders are found, and not followed further.
void append_runs_below(const fs::path& folder, const std::function<void(const std::string&)>& warn,
                       std::vector<fs::path>& runs) {
  std::error_code failure;
  fs::directory_iterator entry(folder, failure);
  for (; !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
    std::error_code unknown;
    const bool is_folder = entry->is_directory(unknown);
    if (unknown == std::errc::no_such_file_or_directory) continue;  // a link to nothing
    if (unknown) {
      warn(entry->path().string() + ": left out: " + unknown.message());
      continue;
    }
    if (!is_folder) continue;
    if (is_run(entry->path())) runs.push_back(entry->path());
    if (!entry->is_symlink(unknown)) append_runs_below(entry->path(), warn, runs);
  }
  if (failure) warn(folder.string() + ": cannot be looked into: " + failure.message());
}

}  // namespace

Json config_record(const Config& resolved) {
  auto record = Json::object();
  for (const auto& [key, value] : resolved.values()) record[key] = json_of(value);
  return record;
}

std::vector<ChangedSetting> changed_settings(const Run& run, const Config& resolved) {
  std::vector<ChangedSetting> changes;
  if (!run.metadata.contains(kConfig)) return changes;  // of before it was written down
  const JsonFields metadata(run.metadata, (run.path / "metadata.json").string());
  const auto now = config_record(resolved);
  for (const auto& [key, value] : metadata.object(kConfig).items()) {
    const auto found = now.find(key);
    // What this version does not know any more cannot be what somebody changed.
    if (found == now.end() || *found == value) continue;
    changes.push_back({.key = key, .from = value, .to = *found});
  }
  return changes;
}

std::vector<ChangedSetting> changes_of(const Run& run) {
  std::vector<ChangedSetting> changes;
  const auto resumed = run.metadata.find(kResumed);
  if (resumed == run.metadata.end() || !resumed->is_array()) return changes;
  for (const auto& entry : *resumed) {
    if (!entry.is_object() || !entry.contains(kChanged) || !entry[kChanged].is_object()) continue;
    for (const auto& [key, change] : entry[kChanged].items()) {
      const bool is_change = change.is_object() && change.contains("from") && change.contains("to");
      if (is_change) changes.push_back({.key = key, .from = change["from"], .to = change["to"]});
    }
  }
  return changes;
}

std::vector<Json> load_lines(const fs::path& path) {
  if (!fs::exists(path)) return {};
  auto text = read_file(path);
  // A crash can cut the last line short: that one line is lost, not the folder.
  const auto end = text.find_last_not_of('\n');
  const auto begin = end == std::string::npos ? end : text.rfind('\n', end);
  const auto last = begin == std::string::npos ? 0 : begin + 1;
  text.resize(Json::accept(text.substr(last)) ? end + 1 : last);
  return lines_of(text, path);
}

std::vector<Json> load_lines(const fs::path& path, int64_t size) {
  if (size == 0) return {};
  const auto text = read_file(path);
  const auto there = static_cast<int64_t>(text.size());
  check(there >= size, path.string(), ": must have at least ", size, " bytes, has ", there);
  check(text[static_cast<size_t>(size) - 1] == '\n', path.string(), ": was changed: its first ",
        size, " bytes must be whole lines");
  return lines_of(text.substr(0, static_cast<size_t>(size)), path);
}

std::string name_of(RunStatus status) {
  switch (status) {
    case RunStatus::running:
      return "running";
    case RunStatus::finished:
      return "finished";
    case RunStatus::stopped:
      return "stopped";
    case RunStatus::failed:
      return "failed";
  }
  return "";
}

void check_can_create_run(const fs::path& path) {
  check(!path.empty(), "output: must be a folder, got an empty path");
  check(!is_run(path), path.string(),
        ": already holds a run; go on with it by kelvin resume, choose another --output or "
        "remove it");
  // What training would append to, or mistake for its own.
  for (const char* name : {"config.toml", "metrics.jsonl", "trajectory.jsonl", "notes.jsonl",
                           "readings.jsonl", "checkpoints"}) {
    std::error_code ignored;
    check(!fs::exists(fs::symlink_status(path / name, ignored)), path.string(),
          ": holds parts of a run that lost its config.toml (", name,
          "); choose another --output or remove it");
  }
  constexpr size_t kRoom = 300;  // for the longest path within a run
  check(path.native().size() + kRoom < PATH_MAX, path.string().substr(0, 100),
        "...: the path must have at most ", PATH_MAX - kRoom - 1, " bytes, has ",
        path.native().size());
  check(!fs::exists(path) || fs::is_directory(path), path.string(),
        ": is a file, must be a folder");
  auto existing = fs::absolute(path).lexically_normal();
  while (!fs::exists(existing)) existing = existing.parent_path();
  check(::access(existing.c_str(), W_OK | X_OK) == 0 && fs::is_directory(existing), path.string(),
        ": cannot be written: no right to write in ", existing.string());
}

RunFolder RunFolder::create(const fs::path& path, const Config& config, const Json& metadata) {
  check_can_create_run(path);
  check(metadata.is_object() || metadata.is_null(), path.string(),
        ": metadata must be a JSON object, got ", text_of(metadata));
  std::error_code failure;
  fs::create_directories(path, failure);
  check(!failure, path.string(), ": cannot be made: ", failure.message());
  RunFolder folder(path);
  write_file_atomically(path / "metadata.json",
                        text_of(metadata.is_null() ? Json::object() : metadata, 1) + "\n");
  folder.set_status(RunStatus::running);
  // Last, because it is what makes the folder a run.
  write_file_atomically(path / "config.toml", config.to_toml());
  return folder;
}

RunFolder RunFolder::open(const fs::path& path) {
  check(fs::exists(path), path.string(), ": no such folder");
  check(is_run(path), path.string(), ": is not a run folder (no config.toml)");
  return RunFolder(path);
}

void RunFolder::append_metrics(const Json& line) const {
  append_line(path_ / "metrics.jsonl", line.dump());
}

void RunFolder::add_resumption(const Resumption& resumption) const {
  auto whole = load_run(path_).metadata;
  Json entry = {{"step", resumption.step}};
  entry.update(resumption.metadata.is_null() ? Json::object() : resumption.metadata);
  for (const auto& change : resumption.changes) {
    entry[kChanged][change.key] = {{"from", change.from}, {"to", change.to}};
    whole[kConfig][change.key] = change.to;
  }
  auto& resumed = whole[kResumed];
  if (!resumed.is_array()) resumed = Json::array();
  resumed.push_back(std::move(entry));
  write_file_atomically(path_ / "metadata.json", text_of(whole, 1) + "\n");
}

void RunFolder::add_readings(const Readings& readings) const { merge_readings(path_, readings); }

void RunFolder::remove_readings() const {
  std::error_code failure;
  for (const char* name : {"readings.jsonl", "definitions.json", "scores"}) {
    fs::remove_all(path_ / name, failure);
    check(!failure, (path_ / name).string(), ": cannot be removed: ", failure.message());
  }
}

void RunFolder::write_scores(const Scores& scores) const {
  kelvin::write_scores(path_ / "scores", scores);
}

void RunFolder::set_status(RunStatus status) const {
  write_file_atomically(path_ / "status", name_of(status) + "\n");
}

bool is_run(const fs::path& path) {
  std::error_code ignored;  // what cannot be looked at is none
  return fs::is_regular_file(path / "config.toml", ignored);
}

Run load_run(const fs::path& path) {
  check(fs::exists(path), path.string(), ": no such folder");
  check(is_run(path), path.string(), ": is not a run folder (no config.toml)");
  Run run{.path = path,
          .config = Config::load(path / "config.toml"),
          .metadata = Json::object(),
          .metrics = load_lines(path / "metrics.jsonl"),
          .trajectory = load_trajectory(path),
          .readings = load_readings(path),
          .scores = {}};
  if (fs::exists(path / "metadata.json")) {
    run.metadata = load_json_object(path / "metadata.json");
  }
  run.status = load_status(path);
  run.scores = load_scores(path / "scores");
  return run;
}

RunStatus load_status(const fs::path& run) {
  const auto path = run / "status";
  if (!fs::exists(path)) return RunStatus::running;
  const auto text = read_file(path);
  const auto word = text.substr(0, text.find('\n'));
  for (const auto status : kStatuses) {
    if (word == name_of(status)) return status;
  }
  check(false, path.string(), ": must hold running, finished, stopped or failed, got '", word, "'");
  return RunStatus::failed;
}

std::vector<fs::path> find_runs(const fs::path& root,
                                const std::function<void(const std::string&)>& warn) {
  std::error_code failure;
  check(fs::is_directory(root, failure), root.string(), ": no such folder");
  if (is_run(root)) return {root};
  std::vector<fs::path> runs;
  // A whole disk may have thousands of them: a few tell what is the matter.
  constexpr int64_t kMostWarnings = 5;
  int64_t left_out = 0;
  append_runs_below(
      root,
      [&](const std::string& text) {
        if (++left_out <= kMostWarnings) warn(text);
      },
      runs);
  if (left_out > kMostWarnings) {
    warn(root.string() + ": " + std::to_string(left_out - kMostWarnings) +
         " more below it left out likewise");
  }
  std::sort(runs.begin(), runs.end());
  return runs;
}

}  // namespace kelvin
