#pragma once

#include <string>
#include <string_view>

#include "kelvin/formats/images.h"

namespace kelvin {

// SVHN's cropped digits: a MAT file with X, bytes [32, 32, 3, n], and y, n labels of 1 to 10, where
// 10 means the digit 0.  `where` names the file in messages.
RawImages parse_svhn_mat(std::string_view bytes, const std::string& where);

}  // namespace kelvin
