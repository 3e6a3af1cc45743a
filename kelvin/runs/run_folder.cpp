#include "kelvin/runs/run_folder.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/text.h"
#include "kelvin/runs/readings_file.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::array kStatuses = {RunStatus::running, RunStatus::finished, RunStatus::stopped,
                                  RunStatus::failed};

}  // namespace

std::vector<Json> load_lines(const fs::path& path) {
  std::vector<Json> lines;
  if (!fs::exists(path)) return lines;
  const auto text = read_file(path);
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    auto parsed = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    // A crash can cut the last line short: that one line is lost, not the folder.
    if (parsed.is_discarded() && stream.peek() == EOF) break;
    check(parsed.is_object(), path.string(), ": line ", lines.size() + 1, ": not a JSON object");
    lines.push_back(std::move(parsed));
  }
  return lines;
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
        ": metadata must be a JSON object, got ", metadata.dump());
  std::error_code failure;
  fs::create_directories(path, failure);
  check(!failure, path.string(), ": cannot be made: ", failure.message());
  RunFolder folder(path);
  write_file_atomically(path / "metadata.json",
                        (metadata.is_null() ? Json::object() : metadata).dump(1) + "\n");
  folder.set_status(RunStatus::running);
  // Last, because it is what makes the folder a run.
  write_file_atomically(path / "config.toml", config.to_toml());
  return folder;
}

RunFolder RunFolder::open(const fs::path& path) {
  check(is_run(path), path.string(), ": is not a run folder (no config.toml)");
  return RunFolder(path);
}

void RunFolder::append_metrics(const Json& line) const {
  append_line(path_ / "metrics.jsonl", line.dump());
}

void RunFolder::add_resumption(const Json& metadata, int64_t step) const {
  auto whole = load_run(path_).metadata;
  Json entry = {{"step", step}};
  entry.update(metadata.is_null() ? Json::object() : metadata);
  whole["resumed"].push_back(entry);
  write_file_atomically(path_ / "metadata.json", whole.dump(1) + "\n");
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

bool is_run(const fs::path& path) { return fs::is_regular_file(path / "config.toml"); }

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
    run.metadata =
        Json::parse(read_file(path / "metadata.json"), nullptr, /*allow_exceptions=*/false);
    check(run.metadata.is_object(), (path / "metadata.json").string(), ": not a JSON object");
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

std::vector<fs::path> find_runs(const fs::path& root) {
  check(fs::is_directory(root), root.string(), ": no such folder");
  if (is_run(root)) return {root};
  std::vector<fs::path> runs;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.is_directory() && is_run(entry.path())) runs.push_back(entry.path());
  }
  std::sort(runs.begin(), runs.end());
  return runs;
}

}  // namespace kelvin
