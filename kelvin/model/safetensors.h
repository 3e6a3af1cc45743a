#pragma once

#include <filesystem>

#include "kelvin/math/named_tensors.h"
#include "kelvin/model/model.h"

namespace kelvin {

// The safetensors format: 8 bytes of header length, a JSON header, then the
// tensors' bytes without holes.  Float32, float64, int64 and uint8.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors);

// Strict: a header that lies about lengths, overlaps or types is an Error, never a crash.
NamedTensors read_safetensors(const std::filesystem::path& path);

// Parameters and buffers by their names.
void save_weights(const std::filesystem::path& path, const Model& model);
// Every tensor of the model must be in the file with its shape, and nothing else may be.
void load_weights(const std::filesystem::path& path, Model& model);

}  // namespace kelvin
