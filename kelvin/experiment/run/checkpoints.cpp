#include "kelvin/experiment/run/checkpoints.h"

#include <torch/torch.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/core/json_fields.h"
#include "kelvin/model/tensors_file.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr auto kWeightsFile = "model.safetensors";
constexpr auto kState = "training.safetensors";
constexpr auto kFactsFile = "training.json";
constexpr auto kPart = ".part";

fs::path checkpoints_of(const fs::path& run) { return run / "checkpoints"; }

std::string folder_name(int64_t step) { return "step-" + std::to_string(step); }

const char* name_of(CheckpointLink link) { return link == CheckpointLink::last ? "last" : "best"; }

// Calls `visit` with the name and the place of each fact, to write or to read it.
template <class AnyCheckpoint, class Visit>
void visit_facts(AnyCheckpoint& checkpoint, const Visit& visit) {
  auto& training = checkpoint.training;
  auto& stalls = checkpoint.stalls;
  visit("epoch", training.epoch);
  visit("step", training.step);
  visit("epoch_steps", training.epoch_steps);
  visit("images", training.images);
  visit("epoch_loss", training.sums.loss);
  visit("epoch_entropy", training.sums.entropy);
  visit("epoch_right", training.sums.right);
  visit("epoch_samples", training.sums.samples);
  visit("temperature", training.temperature);
  visit("seconds", checkpoint.seconds);
  visit("stall_steps", stalls.steps);
  visit("stall_entropy", stalls.entropy);
  visit("stall_loss", stalls.loss);
  visit("stall_accuracy", stalls.accuracy);
  visit("stall_uniform_spans", stalls.uniform_spans);
  visit("is_stalled", stalls.is_stalled);
  visit("best_accuracy", checkpoint.best_accuracy);
  visit("sizes", checkpoint.sizes);
}

Json facts_of(const Checkpoint& checkpoint) {
  Json facts;
  visit_facts(checkpoint, [&](const char* name, const auto& fact) { facts[name] = fact; });
  return facts;
}

// Numbers that no training can have would end as an overflow somewhere.
void check_facts(const Checkpoint& checkpoint, const fs::path& path) {
  const auto& training = checkpoint.training;
  const auto check_count = [&](const char* name, int64_t count) {
    constexpr int64_t kMost = int64_t{1} << 52;
    check(count >= 0 && count <= kMost, path.string(), ": ", name, ": must be from 0 to ", kMost,
          ", is ", count);
  };
  check_count("epoch", training.epoch);
  check_count("step", training.step);
  check_count("epoch_steps", training.epoch_steps);
  check_count("images", training.images);
  check_count("epoch_samples", training.sums.samples);
  check_count("stall_steps", checkpoint.stalls.steps);
  check_count("stall_uniform_spans", checkpoint.stalls.uniform_spans);
  for (const auto& [name, size] : checkpoint.sizes) check_count("sizes", size);
  check(training.temperature > 0 && std::isfinite(training.temperature), path.string(),
        ": temperature: must be above 0, is ", training.temperature);
}

Checkpoint read_facts(const fs::path& path) {
  const auto facts = load_json_object(path);
  const JsonFields fields(facts, path.string());
  Checkpoint checkpoint;
  visit_facts(checkpoint, [&](const char* name, auto& fact) { fields.read(name, fact); });
  check_facts(checkpoint, path);
  return checkpoint;
}

fs::file_type type_of(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type();
}

// The step of a checkpoint's folder; nothing if it is none.
std::optional<int64_t> step_of(const fs::path& folder) {
  constexpr std::string_view kPrefix = "step-";
  constexpr size_t kMostDigits = 18;
  const auto name = folder.filename().string();
  if (!name.starts_with(kPrefix) || name.size() > kPrefix.size() + kMostDigits) return std::nullopt;
  int64_t step = 0;
  const auto [end, failure] =
      std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  const bool is_step = failure == std::errc() && end == name.data() + name.size() && step >= 0;
  if (!is_step || type_of(folder) != fs::file_type::directory) return std::nullopt;
  return step;
}

// Checkpoints by their steps.
std::map<int64_t, fs::path> checkpoints_by_step(const fs::path& run) {
  std::map<int64_t, fs::path> folders;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(checkpoints_of(run), ignored)) {
    if (const auto step = step_of(entry.path())) folders[*step] = entry.path();
  }
  return folders;
}

// Where a link leads; empty if there is none.  A program that copies runs may have put a copy of
// the checkpoint in its place.
fs::path folder_behind(const fs::path& run, CheckpointLink link) {
  const auto place = checkpoints_of(run) / name_of(link);
  const auto type = type_of(place);
  if (type == fs::file_type::not_found) return {};
  if (type == fs::file_type::directory) return place;
  check(type == fs::file_type::symlink, place.string(),
        ": must be a link to a checkpoint beside it, is not");
  std::error_code failure;
  const auto target = fs::read_symlink(place, failure);
  check(!failure, place.string(), ": cannot be read: ", failure.message());
  return checkpoints_of(run) / target.filename();
}

// What training goes on from: what `last` leads to, or, if that was lost or the run was killed
// before it was made, the newest checkpoint.  Empty if there is none.
fs::path last_folder(const fs::path& run) {
  const auto linked = folder_behind(run, CheckpointLink::last);
  if (!linked.empty()) return linked;
  const auto folders = checkpoints_by_step(run);
  return folders.empty() ? fs::path() : folders.rbegin()->second;
}

// A copy in the place of a link becomes the checkpoint that it is, and the link is made.
void replace_copy(const fs::path& run, CheckpointLink link) {
  const auto place = checkpoints_of(run) / name_of(link);
  if (type_of(place) != fs::file_type::directory) return;
  const auto step = read_facts(place / kFactsFile).training.step;
  const auto folder = checkpoints_of(run) / folder_name(step);
  std::error_code failure;
  if (type_of(folder) == fs::file_type::not_found) {
    fs::rename(place, folder, failure);
  } else {
    fs::remove_all(place, failure);
  }
  check(!failure, place.string(), ": cannot be replaced by a link: ", failure.message());
  link_checkpoint(run, link, step);
}

}  // namespace

void write_checkpoint(const fs::path& run, const Checkpoint& checkpoint) {
  const auto folder = checkpoints_of(run) / folder_name(checkpoint.training.step);
  auto part = folder;
  part += kPart;
  std::error_code failure;
  fs::remove_all(part, failure);
  fs::create_directories(part, failure);
  check(!failure, part.string(), ": cannot be made: ", failure.message());
  try {
    write_safetensors(part / kWeightsFile, checkpoint.training.weights);
    write_safetensors(part / kState, checkpoint.training.state);
    write_file_atomically(part / kFactsFile, facts_of(checkpoint).dump(1) + "\n");
    // One that a run left here which was killed before it could link it.
    fs::remove_all(folder, failure);
    fs::rename(part, folder, failure);
    check(!failure, folder.string(), ": cannot be written: ", failure.message());
  } catch (...) {
    fs::remove_all(part, failure);
    throw;
  }
}

void link_checkpoint(const fs::path& run, CheckpointLink link, int64_t step) {
  const auto place = checkpoints_of(run) / name_of(link);
  auto part = place;
  part += kPart;
  std::error_code failure;
  fs::remove(part, failure);
  fs::create_directory_symlink(folder_name(step), part, failure);
  if (!failure) fs::rename(part, place, failure);
  check(!failure, place.string(), ": cannot be linked: ", failure.message());
  sync_file(checkpoints_of(run));  // before anything it used to point at is removed
}

void restore_links(const fs::path& run, const Checkpoint& last) {
  replace_copy(run, CheckpointLink::last);
  replace_copy(run, CheckpointLink::best);
  if (folder_behind(run, CheckpointLink::last).empty()) {
    link_checkpoint(run, CheckpointLink::last, last.training.step);
  }
  if (!folder_behind(run, CheckpointLink::best).empty() || last.best_accuracy < 0) return;
  // The oldest that knows of this accuracy is the one that reached it; a damaged one is not needed
  // to go on.
  const auto knows_it = [&](const fs::path& folder) {
    try {
      return fs::exists(folder / kFactsFile) &&
             read_facts(folder / kFactsFile).best_accuracy == last.best_accuracy;
    } catch (const Error&) {
      return false;
    }
  };
  for (const auto& [step, folder] : checkpoints_by_step(run)) {
    if (!knows_it(folder)) continue;
    link_checkpoint(run, CheckpointLink::best, step);
    return;
  }
}

void remove_unlinked_checkpoints(const fs::path& run) {
  const std::set<fs::path> kept = {folder_behind(run, CheckpointLink::last).filename(),
                                   folder_behind(run, CheckpointLink::best).filename()};
  std::error_code ignored;
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(checkpoints_of(run), ignored)) {
    const auto name = entry.path().filename();
    if (name.string().starts_with("step-") && !kept.contains(name)) others.push_back(entry.path());
  }
  for (const auto& other : others) fs::remove_all(other, ignored);
}

std::optional<Checkpoint> last_checkpoint(const fs::path& run) {
  const auto folder = last_folder(run);
  if (folder.empty()) return std::nullopt;
  check(fs::exists(folder / kFactsFile), folder.string(), ": has no ", kFactsFile,
        ", so that training cannot go on from it");
  auto checkpoint = read_facts(folder / kFactsFile);
  const auto step = step_of(folder);
  check(!step || *step == checkpoint.training.step, (folder / kFactsFile).string(),
        ": step: must be that of its folder, ", step.value_or(0), ", is ",
        checkpoint.training.step);
  checkpoint.training.weights = read_tensors(folder / kWeightsFile);
  checkpoint.training.state = read_tensors(folder / kState);
  return checkpoint;
}

fs::path last_weights(const fs::path& run) {
  const auto folder = last_folder(run);
  auto weights = (folder.empty() ? checkpoints_of(run) / "last" : folder) / kWeightsFile;
  check(fs::exists(weights), run.string(), ": has no weights yet (no ", weights.string(), ")");
  return weights;
}

std::optional<double> saved_temperature(const fs::path& run) {
  const auto folder = last_folder(run);
  if (folder.empty() || !fs::exists(folder / kFactsFile)) return std::nullopt;
  return read_facts(folder / kFactsFile).training.temperature;
}

namespace {

// An update may overflow after its loss was found to be finite.
void check_finite(const TrainState& state, const TrainSnapshot& snapshot) {
  for (const auto& [name, tensor] : snapshot.weights) {
    check(!tensor.is_floating_point() || torch::isfinite(tensor).all().item<bool>(), "train: '",
          name, "' is not finite after step ", state.step, " (T = ", state.temperature,
          ", lr = ", state.learning_rate,
          "), so the checkpoint before it is kept; try a smaller lr or a ", "longer warm-up");
  }
}

}  // namespace

Checkpoints::Checkpoints(const RunFolder& folder, const CheckpointSettings& settings,
                         const RunLog& log, RunFacts facts)
    : folder_(folder), settings_(settings), log_(log), facts_(std::move(facts)) {}

void Checkpoints::start_from(const Checkpoint& checkpoint) {
  saved_step_ = checkpoint.training.step;
  best_accuracy_ = checkpoint.best_accuracy;
}

void Checkpoints::after_step(const TrainState& state) {
  if (settings_.steps == 0 || state.step % settings_.steps != 0) return;
  if (state.step % state.steps_per_epoch == 0) return;  // after_epoch does
  save(state, /*is_best=*/false);
}

void Checkpoints::after_epoch(const TrainState& state) {
  const double accuracy = facts_.test_accuracy();
  const bool is_best = accuracy > best_accuracy_;
  if (is_best) best_accuracy_ = accuracy;
  save(state, is_best);
}

void Checkpoints::at_stop(const TrainState& state) { save(state, /*is_best=*/false); }

void Checkpoints::save(const TrainState& state, bool is_best) {
  // What training goes on from is not written again: in the middle of that there would be none.
  const bool is_new = state.step != saved_step_;
  if (is_new) {
    auto snapshot = state.snapshot();
    check_finite(state, snapshot);
    write_checkpoint(folder_.path(), {.training = std::move(snapshot),
                                      .seconds = facts_.seconds(),
                                      .sizes = log_.sizes(),
                                      .stalls = facts_.stalls(),
                                      .best_accuracy = best_accuracy_});
  }
  // First the best: if only that is done, the last one still has the accuracy before it.
  if (is_best) link_checkpoint(folder_.path(), CheckpointLink::best, state.step);
  if (is_new) link_checkpoint(folder_.path(), CheckpointLink::last, state.step);
  saved_step_ = state.step;
  if (!settings_.keeps_all) remove_unlinked_checkpoints(folder_.path());
}

}  // namespace kelvin
