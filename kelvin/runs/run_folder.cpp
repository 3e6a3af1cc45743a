#include "kelvin/runs/run_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
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

// A dataset may be called by a path, which cannot be the name of a file: slashes are written as in
// addresses of the web.
std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string file_name_of(const std::string& name) {
  return replaced(replaced(name, "%", "%25"), "/", "%2F");
}

std::string name_of_file(const std::string& file_name) {
  return replaced(replaced(file_name, "%2F", "/"), "%25", "%");
}

// Files are called DETECTOR@OOD.csv with the columns population, score.
Scores load_scores(const fs::path& path) {
  const auto name = name_of_file(path.stem().string());
  const auto at = name.find('@');
  Scores scores{.detector = name.substr(0, at),
                .ood = at == std::string::npos ? "" : name.substr(at + 1),
                .id_scores = {},
                .ood_scores = {}};
  std::istringstream lines(read_file(path));
  std::string line;
  std::getline(lines, line);
  for (int64_t number = 2; std::getline(lines, line); ++number) {
    const bool is_id = line.starts_with("id,");
    double score = 0;
    const char* end = line.data() + line.size();
    bool is_score = is_id || line.starts_with("ood,");
    if (is_score) {
      const auto parsed = std::from_chars(line.data() + line.find(',') + 1, end, score);
      is_score = parsed.ec == std::errc() && parsed.ptr == end;
    }
    check(is_score, path.string(), ": line ", number, ": must be population,score, got '", line,
          "'");
    (is_id ? scores.id_scores : scores.ood_scores).push_back(score);
  }
  return scores;
}

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
  std::string text = "population,score\n";
  for (const double score : scores.id_scores) text += fmt::format("id,{}\n", score);
  for (const double score : scores.ood_scores) text += fmt::format("ood,{}\n", score);
  fs::create_directories(path_ / "scores");
  write_file_atomically(
      path_ / "scores" / (file_name_of(scores.detector + "@" + scores.ood) + ".csv"), text);
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
          .readings = load_readings(path),
          .scores = {}};
  if (fs::exists(path / "metadata.json")) {
    run.metadata =
        Json::parse(read_file(path / "metadata.json"), nullptr, /*allow_exceptions=*/false);
    check(run.metadata.is_object(), (path / "metadata.json").string(), ": not a JSON object");
  }
  run.status = load_status(path);
  if (fs::is_directory(path / "scores")) {
    for (const auto& file : fs::directory_iterator(path / "scores")) {
      if (file.path().extension() == ".csv") run.scores.push_back(load_scores(file.path()));
    }
    std::sort(run.scores.begin(), run.scores.end(), [](const Scores& a, const Scores& b) {
      return std::tie(a.detector, a.ood) < std::tie(b.detector, b.ood);
    });
  }
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
