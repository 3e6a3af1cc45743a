#pragma once

#include <string>

#include "kelvin/data/dataset.h"

namespace kelvin {

// The MD5 sum of labels and pixels in their order; of pictures on disk that of their labels and
// names, because reading them all would take too long.
std::string fingerprint(const Images& images);

}  // namespace kelvin
