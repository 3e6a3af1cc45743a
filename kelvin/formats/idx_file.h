#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kelvin/formats/images.h"

namespace kelvin {

// The format of MNIST: a magic number that names type and rank, the sizes, then bytes; all numbers
// big-endian.  `where` names the file in messages.

// Grey images, magic 0x803: [samples, 1, height, width]; labels are left empty.
RawImages parse_idx_images(std::string_view bytes, const std::string& where);

// Labels, magic 0x801, each below `classes`.
std::vector<int64_t> parse_idx_labels(std::string_view bytes, const std::string& where,
                                      int64_t classes);

}  // namespace kelvin
