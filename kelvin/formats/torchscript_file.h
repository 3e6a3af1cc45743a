#pragma once

#include <filesystem>

namespace kelvin {

// Whether torch.jit.save wrote it: a zip with code and constants beside the weights, which
// torch.save has not.  Looks at the zip's list alone; what is damaged or no zip is none.
bool is_torchscript_file(const std::filesystem::path& path);

}  // namespace kelvin
