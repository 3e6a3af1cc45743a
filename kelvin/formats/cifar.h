#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kelvin/formats/images.h"
#include "kelvin/formats/pickle_value.h"

namespace kelvin {

// How NumPy's arrays are pickled: as calls of a few functions and classes, then filled by BUILD.
const PickleNames& numpy_names();

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

// CIFAR as its authors give it to users of Python: a pickled dict with `data`, an array of bytes
// [n, 3072] whose rows are [3, 32, 32], and a list of n labels below `classes` under `label_key`.
// `where` names the file in messages.
RawImages parse_cifar_pickle(std::string_view bytes, const std::string& where,
                             const std::string& label_key, int64_t classes);

}  // namespace kelvin
