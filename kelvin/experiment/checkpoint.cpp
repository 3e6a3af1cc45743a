#include "kelvin/experiment/checkpoint.h"

#include "kelvin/core/check.h"
#include "kelvin/model/weights.h"

namespace kelvin {

namespace fs = std::filesystem;

void write_checkpoint(const RunFolder& folder, const Model& model, int64_t step) {
  const auto checkpoints = folder.path() / "checkpoints";
  const auto name = "step-" + std::to_string(step);
  std::error_code failure;
  fs::create_directories(checkpoints / name, failure);
  check(!failure, checkpoints.string(), ": cannot be made: ", failure.message());
  save_weights(checkpoints / name / "model.safetensors", model);

  const auto link = checkpoints / "last.part";
  fs::remove(link, failure);
  fs::create_directory_symlink(name, link, failure);
  if (!failure) fs::rename(link, checkpoints / "last", failure);
  check(!failure, (checkpoints / "last").string(), ": cannot be linked: ", failure.message());
}

fs::path last_weights(const fs::path& run) {
  const auto weights = run / "checkpoints" / "last" / "model.safetensors";
  check(fs::exists(weights), run.string(), ": has no weights yet (no ", weights.string(), ")");
  return weights;
}

}  // namespace kelvin
