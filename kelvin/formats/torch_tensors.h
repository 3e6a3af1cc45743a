#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "kelvin/formats/pickle_value.h"
#include "kelvin/formats/stored_tensors.h"

namespace kelvin {

// The bytes of each storage by its key.
using TorchStorages = std::map<std::string_view, std::string_view>;

// The tensors of a pickled dict and of the dicts in it, "outer.inner", in the order of the dicts.
// Other values are left out; texts, numbers and booleans of the outermost dict go to the metadata,
// shortened.  What takes memory, copies of tensors that do not lie row by row and values that are
// shared many times, is limited in proportion to `file_bytes`.  The views point into `storages`.
StoredTensors torch_tensors(const Pickle& pickle, const TorchStorages& storages,
                            uint64_t file_bytes, const std::string& where);

}  // namespace kelvin
