#pragma once

#include <filesystem>

#include "kelvin/runs/config.h"

namespace kelvin {

// Makes the paths in "imagefolder:PATH" and "imagelist:A,B", of image roots and of pretrained
// weights absolute, so that the run can be measured from anywhere: those of the current folder,
// else those of the data folder.
void make_paths_absolute(Config& config, const std::filesystem::path& data_folder);

}  // namespace kelvin
