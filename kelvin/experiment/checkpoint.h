#pragma once

#include <cstdint>
#include <filesystem>

#include "kelvin/model/model.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {

// Writes checkpoints/step-N/ and points the link checkpoints/last at it, in this
// order: an interruption leaves the previous checkpoint in place.
void write_checkpoint(const RunFolder& folder, const Model& model, int64_t step);

// The weights that checkpoints/last points at.
std::filesystem::path last_weights(const std::filesystem::path& run);

}  // namespace kelvin
