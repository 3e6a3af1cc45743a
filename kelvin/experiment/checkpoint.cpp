#include "kelvin/experiment/checkpoint.h"

#include <nlohmann/json.hpp>
#include <set>

#include "kelvin/core/check.h"
#include "kelvin/core/files.h"
#include "kelvin/model/tensors_file.h"

namespace kelvin {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr auto kWeights = "model.safetensors";
constexpr auto kState = "training.safetensors";
constexpr auto kFacts = "training.json";
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

Checkpoint read_facts(const fs::path& path) {
  const auto facts = Json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  check(facts.is_object(), path.string(), ": not a JSON object");
  try {
    Checkpoint checkpoint;
    visit_facts(checkpoint, [&](const char* name, auto& fact) { facts.at(name).get_to(fact); });
    return checkpoint;
  } catch (const Json::exception& error) {
    check(false, path.string(), ": ", error.what());
    throw;
  }
}

// The name of the folder that a link points at; empty if there is no such link.
std::string target_of(const fs::path& run, CheckpointLink link) {
  const auto place = checkpoints_of(run) / name_of(link);
  std::error_code failure;
  const auto status = fs::symlink_status(place, failure);
  if (status.type() == fs::file_type::not_found) return "";
  check(status.type() == fs::file_type::symlink, place.string(),
        ": must be a link to a checkpoint beside it, is not");
  const auto target = fs::read_symlink(place, failure);
  check(!failure, place.string(), ": cannot be read: ", failure.message());
  return target.filename().string();
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
    write_safetensors(part / kWeights, checkpoint.training.weights);
    write_safetensors(part / kState, checkpoint.training.state);
    write_file_atomically(part / kFacts, facts_of(checkpoint).dump(1) + "\n");
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

void remove_unlinked_checkpoints(const fs::path& run) {
  const std::set<std::string> kept = {target_of(run, CheckpointLink::last),
                                      target_of(run, CheckpointLink::best)};
  std::error_code ignored;
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(checkpoints_of(run), ignored)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("step-") && !kept.contains(name)) others.push_back(entry.path());
  }
  for (const auto& other : others) fs::remove_all(other, ignored);
}

std::optional<Checkpoint> last_checkpoint(const fs::path& run) {
  const auto name = target_of(run, CheckpointLink::last);
  if (name.empty()) return std::nullopt;
  const auto folder = checkpoints_of(run) / name;
  check(fs::exists(folder / kFacts), folder.string(), ": has no ", kFacts,
        ", so that training cannot go on from it");
  auto checkpoint = read_facts(folder / kFacts);
  checkpoint.training.weights = read_tensors(folder / kWeights);
  checkpoint.training.state = read_tensors(folder / kState);
  return checkpoint;
}

fs::path last_weights(const fs::path& run) {
  auto weights = checkpoints_of(run) / "last" / kWeights;
  check(fs::exists(weights), run.string(), ": has no weights yet (no ", weights.string(), ")");
  return weights;
}

std::optional<double> saved_temperature(const fs::path& run) {
  const auto facts = checkpoints_of(run) / "last" / kFacts;
  if (!fs::exists(facts)) return std::nullopt;
  return read_facts(facts).training.temperature;
}

}  // namespace kelvin
