#pragma once

#include <filesystem>

namespace kelvin {

// The model that runs such a file, see kelvin/model/torchscript.h.
inline constexpr auto kTorchscriptModel = "torchscript";

// Whether torch.jit.save wrote it: a zip with code and constants beside the weights, which
// torch.save has not.  Looks at the zip's list alone; what is damaged or no zip is none.
bool is_torchscript_file(const std::filesystem::path& path);

}  // namespace kelvin
