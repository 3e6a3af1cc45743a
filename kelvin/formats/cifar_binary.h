#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kelvin/formats/raw_images.h"

namespace kelvin {

// A record of CIFAR's binary files: labels of one byte each, then 3072 bytes of pixels, which are
// [3, 32, 32].
struct CifarRecord {
  int64_t label_bytes = 1;
  int64_t label_index = 0;  // which of the labels is taken
  int64_t classes = 10;
};

// `where` names the file in messages.
RawImages parse_cifar_binary(std::string_view bytes, const std::string& where,
                             const CifarRecord& record);

}  // namespace kelvin
