#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kelvin/formats/raw_images.h"

namespace kelvin {

// CIFAR as its authors give it to users of Python: a pickled dict with `data`, an array of bytes
// [n, 3072] whose rows are [3, 32, 32], and a list of n labels below `classes` under `label_key`.
// `where` names the file in messages.
RawImages parse_cifar_pickle(std::string_view bytes, const std::string& where,
                             const std::string& label_key, int64_t classes);

}  // namespace kelvin
