#include "kelvin/runs/prune.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>

#include "kelvin/core/check.h"
#include "kelvin/core/json_fields.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;

using Paths = std::vector<fs::path>;

// None of these follows a link.
bool is_own_folder(const fs::path& path) {
  return fs::symlink_status(path).type() == fs::file_type::directory;
}
bool is_own_file(const fs::path& path) {
  return fs::symlink_status(path).type() == fs::file_type::regular;
}

// What lies in the folder itself, by name; nothing if it is a link or no folder.
Paths prune_entries_of(const fs::path& folder) {
  Paths entries;
  if (!is_own_folder(folder)) return entries;
  for (const auto& entry : fs::directory_iterator(folder)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool is_part(const fs::path& path) { return path.extension() == ".part"; }

bool is_step(const fs::path& path) {
  constexpr std::string_view kPrefix = "step-";
  const auto name = path.filename().string();
  return name.size() > kPrefix.size() && name.starts_with(kPrefix) &&
         name.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos;
}

void append_part_files(const fs::path& folder, Paths& found) {
  for (const auto& path : prune_entries_of(folder)) {
    if (is_part(path) && is_own_file(path)) found.push_back(path);
  }
}

// The checkpoint to which the link leads; nothing if that is not one of this run with weights.
std::optional<fs::path> checkpoint_behind(const fs::path& link) {
  std::error_code failure;
  const auto target = fs::canonical(link, failure);
  if (failure || target.parent_path() != fs::canonical(link.parent_path())) return std::nullopt;
  const auto weights = target / "model.safetensors";
  if (!fs::is_regular_file(weights, failure)) return std::nullopt;
  const auto bytes = fs::file_size(weights, failure);
  if (failure || bytes == 0) return std::nullopt;
  return target;
}

// Whether no checkpoint was the best when this one was saved: training had not reached the end of
// its first epoch.
bool is_before_the_best(const fs::path& checkpoint) {
  try {
    const auto path = checkpoint / "training.json";
    const auto facts = load_json_object(path);
    return JsonFields(facts, path.string()).number("best_accuracy") < 0;
  } catch (const Error&) {  // then nobody knows
    return false;
  }
}

// The checkpoints to be kept; nothing if it is not certain which.
std::optional<Paths> kept_checkpoints(const fs::path& checkpoints) {
  const auto last = checkpoint_behind(checkpoints / "last");
  if (!last) return std::nullopt;
  const auto link = checkpoints / "best";
  const bool is_missing = fs::symlink_status(link).type() == fs::file_type::not_found;
  // One of the others may be it, if the link was lost.
  if (is_missing) return is_before_the_best(*last) ? std::optional<Paths>({*last}) : std::nullopt;
  const auto best = checkpoint_behind(link);
  if (!best) return std::nullopt;
  return Paths{*last, *best};
}

void append_checkpoints(const fs::path& checkpoints, bool with_training_state, const Paths& kept,
                        Paths& found) {
  const auto is_kept = [&](const fs::path& path) {
    return std::find(kept.begin(), kept.end(), fs::canonical(path)) != kept.end();
  };
  for (const auto& path : prune_entries_of(checkpoints)) {
    if (is_part(path)) {  // a folder, a file or a link: neither it nor its removal is followed
      found.push_back(path);
    } else if (is_own_folder(path) && is_step(path) && !is_kept(path)) {
      found.push_back(path);
    } else if (is_own_folder(path)) {
      append_part_files(path, found);
      const auto state = path / "training.safetensors";
      if (with_training_state && is_own_file(state)) found.push_back(state);
    }
  }
}

int64_t bytes_of(const fs::path& path) {
  if (is_own_file(path)) return static_cast<int64_t>(fs::file_size(path));
  int64_t bytes = 0;
  for (const auto& entry : prune_entries_of(path)) bytes += bytes_of(entry);
  return bytes;
}

PrunedRun found_in(const fs::path& run, const PruneOptions& options) {
  Paths found;
  PrunedRun pruned;
  append_part_files(run, found);
  const auto checkpoints = run / "checkpoints";
  if (is_own_folder(checkpoints)) {
    if (const auto kept = kept_checkpoints(checkpoints)) {
      const bool is_finished = load_status(run) == RunStatus::finished;
      append_checkpoints(checkpoints, options.training_state && is_finished, *kept, found);
    } else {
      pruned.note = "checkpoints left alone: last or best is missing or leads to no weights";
    }
  }
  append_part_files(run / "features", found);
  append_part_files(run / "scores", found);
  append_part_files(run / "trajectory", found);
  for (const auto& path : prune_entries_of(run / "features")) {
    if (path.extension() == ".npz" && is_own_file(path)) found.push_back(path);
  }
  for (const auto& path : found) pruned.removed.push_back({.path = path, .bytes = bytes_of(path)});
  return pruned;
}

PrunedRun locked_run() { return {.note = "left alone: a process is at work in it"}; }

}  // namespace

int64_t PrunedRun::bytes() const {
  int64_t sum = 0;
  for (const auto& entry : removed) sum += entry.bytes;
  return sum;
}

PrunedRun prune_run(const fs::path& run, const PruneOptions& options) {
  check(is_run(run), run.string(), ": is not a run folder (no config.toml)");
  if (options.dry_run) return is_locked(run) ? locked_run() : found_in(run, options);
  // Held to the end, so that nobody resumes from what is about to go.
  const auto lock = RunLock::try_take(run);
  if (!lock) return locked_run();
  auto pruned = found_in(run, options);
  for (const auto& entry : pruned.removed) {
    std::error_code failure;
    fs::remove_all(entry.path, failure);  // removes links, does not follow them
    check(!failure, entry.path.string(), ": cannot be removed: ", failure.message());
  }
  return pruned;
}

}  // namespace kelvin
