#pragma once

#include <filesystem>

#include "kelvin/math/named_tensors.h"

namespace kelvin {

// Adds arrays to an npz, which is made if it is not there; those of the same name are replaced.
void add_curves(const std::filesystem::path& npz, const NamedTensors& curves);

// A new npz of them alone, in place of what may be there.
void write_curves(const std::filesystem::path& npz, const NamedTensors& curves);

}  // namespace kelvin
