#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "kelvin/ops/tensors.h"

namespace kelvin {

// All tensors of a file of weights by their names: safetensors, or a plain dict saved by
// torch.save, from which nothing is executed.  What the file is, its content decides, not its name.
NamedTensors read_tensors(const std::filesystem::path& path);

// As safetensors, in the order of their names; `metadata` is text that goes along, as does a
// checksum, by which a damaged file is told when it is read.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace kelvin
