#pragma once

#include <filesystem>

#include "kelvin/formats/stored_tensors.h"

namespace kelvin {

// Reads a file of weights of any format we know, told by its content and not by its name.
StoredTensors read_weights_file(const std::filesystem::path& path);

}  // namespace kelvin
