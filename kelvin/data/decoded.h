#pragma once

#include "kelvin/data/dataset.h"

namespace kelvin {

// The same images with their bytes in memory; files are decoded on all cores, the middle of each.
Images decoded(const Images& images);

}  // namespace kelvin
